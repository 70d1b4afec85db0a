#include "schedule/step_draft.h"

#include <algorithm>

#include "base/check.h"

namespace quire {

void StepDraft::Begin(const ScheduleState& state, const ScheduleLimits& limits) {
  QUIRE_CHECK(state.cache != nullptr && limits.token_budget > 0);
  state_ = &state;
  limits_ = &limits;
  items.clear();
  decision.refused.clear();
  decision.preempted.clear();
  decision.admitted.clear();
  decision.parts.clear();
  decision.deferred.clear();
  tokens_left = limits.token_budget;
  bytes_left = state.cache->available_bytes();
  for (uint32_t i = 0; i < state.sequences.size(); ++i) {
    if (!state.sequences[i].is_running()) continue;
    Item item = MakeNew(i, {}, false);
    item.is_new = false;
    item.begin = item.end = item.sequence->pages->next_position();
    items.push_back(item);
  }
  num_running = static_cast<uint32_t>(items.size());
}

double StepDraft::ServiceOf(const ScheduledSequence& sequence) const {
  if (sequence.tenant >= state_->tenants.size()) return 0;
  const TenantService& tenant = state_->tenants[sequence.tenant];
  return static_cast<double>(tenant.served_tokens) / tenant.share;
}

StepDraft::Item StepDraft::MakeNew(uint32_t index, const StartNeed& need, bool takes_match) const {
  const ScheduledSequence& sequence = state_->sequences[index];
  Item item{};
  item.sequence = &sequence;
  item.index = index;
  item.begin = item.end = need.begin;
  item.start = need;
  item.is_new = true;
  item.takes_match = takes_match;
  item.is_protected = sequence.num_preemptions >= limits_->most_preemptions;
  item.service = ServiceOf(sequence);
  return item;
}

size_t StepDraft::BytesTo(const Item& item, uint32_t end) const {
  if (end == item.begin) return 0;
  if (item.is_new) return item.start.match_bytes + FirstStepBytes(cache().shape(), item.start, end);
  return item.sequence->pages->BytesNeeded(end);
}

size_t StepDraft::PromisedBytes(const Item& item) const {
  return GrowthBytes(cache().shape(), item.length(), item.num_known());
}

bool StepDraft::Give(Item& item, uint32_t most) {
  most = std::min({most, item.num_left(), tokens_left});
  if (most == 0) return false;
  const size_t bytes = item.bytes + bytes_left;
  const auto fits = [&](uint32_t end) { return BytesTo(item, end) <= bytes; };
  uint32_t end = item.end + most;
  if (!fits(end)) {
    // The most whole pages that fit; if none does, tokens of the page that is open.
    const uint32_t page_size = cache().shape().page_size;
    const uint32_t first_page = item.end / page_size + 1;
    uint32_t low = first_page - 1, high = end / page_size;  // fits; may fit
    while (low < high) {
      const uint32_t middle = low + (high - low + 1) / 2;
      if (fits(middle * page_size))
        low = middle;
      else
        high = middle - 1;
    }
    if (low >= first_page)
      end = low * page_size;
    else if (fits(std::min(end, first_page * page_size - 1)))
      end = std::min(end, first_page * page_size - 1);
    else
      return false;
    if (end <= item.end) return false;
  }
  const size_t taken = BytesTo(item, end);
  bytes_left = bytes - taken;
  tokens_left -= end - item.end;
  item.bytes = taken;
  item.end = end;
  return true;
}

size_t StepDraft::ReleasableBytes(const Item& item) const {
  return item.sequence->pages->ReleasableBytes();
}

void StepDraft::Preempt(Item& item) {
  tokens_left += item.num_tokens();
  bytes_left += item.bytes + ReleasableBytes(item);
  item.end = item.begin;
  item.bytes = 0;
  item.is_gone = true;
  --num_running;
  decision.preempted.push_back(item.index);
}

bool StepDraft::HoldsBefore(const Item& a, const Item& b) {
  if (a.is_protected != b.is_protected) return a.is_protected;
  if (a.sequence->priority != b.sequence->priority)
    return a.sequence->priority < b.sequence->priority;
  if (a.sequence->arrival != b.sequence->arrival) return a.sequence->arrival < b.sequence->arrival;
  return a.index < b.index;  // forks of one
}

namespace {

bool IsBefore(const ScheduledSequence& a, double service_a, const ScheduledSequence& b,
              double service_b) {
  if (a.priority != b.priority) return a.priority < b.priority;
  if (service_a != service_b) return service_a < service_b;
  return a.arrival < b.arrival;
}

}  // namespace

bool StepDraft::ComputesBefore(const Item& a, const Item& b) {
  if (a.has_turn != b.has_turn) return a.has_turn;
  return IsBefore(*a.sequence, a.service, *b.sequence, b.service);
}

bool StepDraft::ComesBefore(const ScheduledSequence& a, const ScheduledSequence& b) const {
  if (a.tenant == b.tenant) return IsBefore(a, 0, b, 0);
  return IsBefore(a, ServiceOf(a), b, ServiceOf(b));
}

}  // namespace quire
