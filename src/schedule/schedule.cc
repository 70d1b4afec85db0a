#include "schedule/schedule.h"

#include <algorithm>

#include "schedule/admission.h"
#include "schedule/step_draft.h"

namespace quire {
namespace {

using Item = StepDraft::Item;

constexpr uint64_t kTurnSteps = 16;     // between two turns of prompts that wait longest for a part
constexpr uint32_t kPromptTokens = 16;  // of a step, kept for prompts however many decode

// Items of draft->order: each one token, if its page fits.
void GiveDecodes(StepDraft* draft) {
  std::vector<Item>& items = draft->items;
  std::vector<uint32_t>& order = draft->order;
  order.clear();
  for (uint32_t i = 0; i < items.size(); ++i)
    if (items[i].is_decode()) order.push_back(i);
  // If there are more than the budget allows, they take turns.
  const uint32_t budget = draft->limits().token_budget;
  const bool has_prompts = order.size() < draft->state().sequences.size();
  const uint32_t kept = std::clamp(budget / 4, 1u, kPromptTokens);
  const uint32_t most = has_prompts && budget > 1 ? budget - kept : budget;
  if (order.size() > most) {
    std::ranges::nth_element(order, order.begin() + most, {}, [&](uint32_t i) {
      return std::pair(items[i].sequence->last_part, items[i].sequence->arrival);
    });
    order.resize(most);
  }
  size_t bytes = 0;
  for (const uint32_t i : order) bytes += draft->BytesTo(items[i], items[i].begin + 1);
  const bool is_short = bytes > draft->bytes_left;
  if (is_short)
    std::ranges::sort(
        order, [&](uint32_t a, uint32_t b) { return StepDraft::HoldsBefore(items[a], items[b]); });
  size_t hopeless = SIZE_MAX;  // nobody from here on gets so many bytes
  for (const uint32_t i : order) {
    Item& item = items[i];
    if (item.is_gone || draft->Give(item, 1)) continue;
    const size_t needed = draft->BytesTo(item, item.begin + 1);
    const auto may_go = [&](const Item& other) {
      return !other.is_protected && StepDraft::HoldsBefore(item, other);
    };
    if (needed < hopeless && draft->MakeRoom(needed, may_go))
      draft->Give(item, 1);
    else
      hopeless = std::min(hopeless, needed);
  }
}

// What prompts did not use of the tokens that were kept for them.
void GiveRest(StepDraft* draft) {
  for (Item& item : draft->items) {
    if (draft->tokens_left == 0) return;
    if (item.is_decode() && !item.is_gone && item.num_tokens() == 0) draft->Give(item, 1);
  }
}

// The one that waits longest for a part is first, now and then.
void GiveTurn(StepDraft* draft) {
  if (draft->state().step % kTurnSteps != 0 || draft->prompts.empty()) return;
  const auto last = [&](uint32_t i) {
    const ScheduledSequence& sequence = *draft->items[i].sequence;
    return std::pair(std::max(sequence.last_part, sequence.waiting_since), sequence.arrival);
  };
  draft->items[*std::ranges::min_element(draft->prompts, {}, last)].has_turn = true;
}

// Another one computes its next page in this step.
bool IsHeldBack(const StepDraft& draft, const Item& item) {
  if (item.num_tokens() > 0) return false;
  return std::ranges::any_of(draft.leaders, [&](uint32_t i) {
    const Item& leader = draft.items[i];
    return leader.num_tokens() > 0 && ComputesSamePage(draft.cache(), leader, item);
  });
}

bool GivePrompt(StepDraft* draft, uint32_t index, uint32_t most) {
  Item& item = draft->items[index];
  const bool is_first = item.num_tokens() == 0;
  if (!draft->Give(item, most)) return false;
  if (is_first) draft->leaders.push_back(index);
  return true;
}

void GivePrompts(StepDraft* draft) {
  std::vector<Item>& items = draft->items;
  std::ranges::sort(draft->prompts, [&](uint32_t a, uint32_t b) {
    return StepDraft::ComputesBefore(items[a], items[b]);
  });
  // Half of the tokens to the first in order ...
  const uint32_t rest = draft->tokens_left / 2;
  draft->leaders.clear();
  for (const uint32_t i : draft->prompts) {
    if (draft->tokens_left <= rest) break;
    const Item& item = items[i];
    if (item.is_gone || IsHeldBack(*draft, item)) continue;
    if (GivePrompt(draft, i, draft->tokens_left - rest) || item.is_new) continue;
    const auto may_go = [&](const Item& other) {
      return !other.is_protected && other.sequence->priority > item.sequence->priority;
    };
    if (draft->MakeRoom(draft->BytesTo(item, item.begin + 1), may_go))
      GivePrompt(draft, i, draft->tokens_left - rest);
  }
  // ... and half to the shortest, so that a short one never waits behind long ones.
  std::ranges::sort(draft->prompts, {}, [&](uint32_t i) {
    const ScheduledSequence& sequence = *items[i].sequence;
    return std::tuple(sequence.priority, items[i].num_left(), sequence.arrival);
  });
  for (const uint32_t i : draft->prompts) {
    if (draft->tokens_left == 0) break;
    if (!items[i].is_gone && !IsHeldBack(*draft, items[i])) GivePrompt(draft, i, UINT32_MAX);
  }
}

// Nobody got anything: the first in order takes its pages from the others, at last from protected
// ones too (forks of one may need more than it alone). If there are none, it starts again: its last
// page is shared with an ended sequence, and there is no room for a copy.
void ForceProgress(StepDraft* draft) {
  const auto has_part = [](const Item& item) { return item.num_tokens() > 0; };
  if (draft->num_running == 0 || !draft->decision.preempted.empty() ||
      std::ranges::any_of(draft->items, has_part))
    return;
  Item* first = nullptr;
  for (Item& item : draft->items)
    if (!item.is_new && (first == nullptr || StepDraft::HoldsBefore(item, *first))) first = &item;
  const auto is_other = [&](const Item& other) { return &other != first; };
  while (!draft->Give(*first, UINT32_MAX) && draft->PreemptLast(is_other)) continue;
  if (draft->decision.preempted.empty() && !has_part(*first)) draft->Preempt(*first);
}

void Finish(StepDraft* draft) {
  StepDecision& decision = draft->decision;
  const auto add = [&](const Item& item) {
    if (item.num_tokens() > 0) decision.parts.push_back({item.index, item.num_tokens()});
  };
  for (const Item& item : draft->items)
    if (item.is_decode()) add(item);
  for (const Item& item : draft->items) {
    if (item.is_decode() || item.num_tokens() == 0) continue;
    if (item.is_new && !decision.preempted.empty()) continue;
    if (item.is_new) decision.admitted.push_back({item.index, item.takes_match});
    add(item);
  }
}

}  // namespace

Scheduler::Scheduler() : draft_(std::make_unique<StepDraft>()) {}
Scheduler::~Scheduler() = default;

const StepDecision& Scheduler::Schedule(const ScheduleState& state, const ScheduleLimits& limits) {
  StepDraft* draft = draft_.get();
  draft->Begin(state, limits);
  GiveDecodes(draft);
  draft->prompts.clear();
  for (uint32_t i = 0; i < draft->items.size(); ++i)
    if (!draft->items[i].is_gone && !draft->items[i].is_decode()) draft->prompts.push_back(i);
  if (draft->decision.preempted.empty()) Admit(draft);
  GiveTurn(draft);
  GivePrompts(draft);
  GiveRest(draft);
  ForceProgress(draft);
  Finish(draft);
  return draft->decision;
}

}  // namespace quire
