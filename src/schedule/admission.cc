#include "schedule/admission.h"

#include <algorithm>

#include "cache/kv_need.h"

namespace quire {
namespace {

using Item = StepDraft::Item;

constexpr uint32_t kMostLooks = 16;  // waiting sequences that the prefix tree is asked for
constexpr uint64_t kTurnSteps = 64;  // between two turns of those that wait longest

class Admitter {
 public:
  explicit Admitter(StepDraft* draft)
      : draft_(*draft),
        cache_(draft->cache()),
        shape_(draft->cache().shape()),
        budget_(draft->cache().pool().budget_bytes()) {}

  void Run() {
    Choose();
    if (draft_.candidates.empty()) return;
    for (const uint32_t prompt : draft_.prompts)
      promised_ += draft_.PromisedBytes(draft_.items[prompt]);
    for (const Item& item : draft_.items)
      if (item.is_protected) reserved_ += LeastBytes(shape_, item.sequence->most_tokens);
    for (const uint32_t index : draft_.candidates)
      if (!TryToStart(index)) break;
  }

 private:
  const ScheduledSequence& sequence(uint32_t index) const {
    return draft_.state().sequences[index];
  }

  bool IsRefused(uint32_t index) {
    const size_t least = LeastBytes(shape_, sequence(index).most_tokens);
    if (least <= budget_) return false;
    draft_.decision.refused.push_back({index, least});
    return true;
  }

  // The first kMostLooks waiting ones in order; before them the one whose turn it is.
  void Choose() {
    const ScheduleState& state = draft_.state();
    const bool is_turn = state.step % kTurnSteps <= 1;  // one step to preempt, one to start
    const auto before = [&](uint32_t a, uint32_t b) {
      return draft_.ComesBefore(sequence(a), sequence(b));
    };
    std::vector<uint32_t>& chosen = draft_.candidates;  // a heap, the last in order on top
    chosen.clear();
    for (uint32_t i = 0; i < state.sequences.size(); ++i) {
      const ScheduledSequence& waiting = state.sequences[i];
      if (waiting.is_running()) continue;
      if (waiting.waiting_since + 1 >= state.step && IsRefused(i)) continue;  // new: answer now
      if (is_turn && waiting.waiting_since + kTurnSteps <= state.step &&
          (turn_ == kNobody || waiting.waiting_since < sequence(turn_).waiting_since ||
           (waiting.waiting_since == sequence(turn_).waiting_since &&
            waiting.arrival < sequence(turn_).arrival)))
        turn_ = i;
      if (chosen.size() == kMostLooks) {
        if (!before(i, chosen.front())) continue;
        std::ranges::pop_heap(chosen, before);
        chosen.pop_back();
      }
      chosen.push_back(i);
      std::ranges::push_heap(chosen, before);
    }
    std::ranges::sort_heap(chosen, before);
    if (turn_ == kNobody) return;
    std::erase(chosen, turn_);
    chosen.insert(chosen.begin(), turn_);
  }

  // False: nobody after it may start in this step.
  bool TryToStart(uint32_t index) {
    const ScheduledSequence& waiting = sequence(index);
    if (waiting.waiting_since + 1 < draft_.state().step && IsRefused(index)) return true;
    const bool is_alone = draft_.num_running == 0 && num_new_ == 0;
    const bool is_protected = waiting.num_preemptions >= draft_.limits().most_preemptions;
    if (LeavesSlot(waiting)) return true;
    if (blocked_ != nullptr &&
        (waiting.priority != blocked_->priority || HasRunning(waiting.tenant)))
      return true;
    bool takes_match = !waiting.is_private && cache_.keeps_prefixes() && waiting.most_matched > 0;
    const size_t least = LeastBytes(shape_, waiting.most_tokens);
    if (is_protected) {
      if (reserved_ + least > budget_) return true;  // those that are protected end without it
      // Where a match goes on, a page may be copied.
      if (!is_alone && reserved_ + least + OpenPageBytes(shape_) > budget_) takes_match = false;
    }
    const StartNeed start = takes_match
                                ? NeedWithMatch(cache_, waiting.ns, waiting.matched_tokens())
                                : NeedWithoutMatch(cache_, waiting.ns);
    Item item = draft_.MakeNew(index, start, takes_match);
    item.has_turn = index == turn_;
    for (const uint32_t prompt : draft_.prompts)
      if (const Item& leader = draft_.items[prompt];
          StepDraft::ComputesBefore(leader, item) && ComputesSamePage(cache_, leader, item)) {
        draft_.decision.deferred.push_back(index);
        return true;  // it starts when it can take over what the leader computes
      }
    const size_t needed = NeededBytes(item);
    if (HasSlot() && promised_ + needed + KeptBytes(waiting) <= draft_.bytes_left) {
      promised_ += needed;
      if (is_protected) reserved_ += least;
      Add(item);
      return true;
    }
    if (is_alone) {
      StartAlone(item);
      return false;
    }
    if (blocked_ == nullptr) PreemptFor(item);
    blocked_ = &waiting;
    return draft_.decision.preempted.empty();
  }

  bool HasRunning(TenantId tenant) const {
    return std::ranges::any_of(draft_.items, [&](const Item& item) {
      return !item.is_gone && item.sequence->tenant == tenant;
    });
  }

  bool HasSlot() const { return draft_.num_running + num_new_ < draft_.limits().max_running; }
  // Of eight or more, the last place is for a tenant that has none.
  bool LeavesSlot(const ScheduledSequence& waiting) const {
    const uint32_t most = draft_.limits().max_running;
    const bool is_last = draft_.num_running + num_new_ + 1 == most && most >= 8;
    return is_last && draft_.state().tenants.size() > 1 && HasRunning(waiting.tenant);
  }

  // Of the watermark.
  size_t KeptBytes(const ScheduledSequence& waiting) const {
    return HasRunning(waiting.tenant) ? draft_.limits().watermark_bytes : 0;
  }

  // For its prompt and one page.
  size_t NeededBytes(const Item& item) const {
    const uint32_t known = item.num_known(), most = item.sequence->most_tokens;
    const uint32_t end = std::max(known, std::min(known + shape_.page_size, most));
    // The first token after the match may need a copy of the match's last page.
    const uint32_t first = std::max(item.begin, std::min(item.start.length, most - 1)) + 1;
    const size_t bytes = std::max(GrowthBytes(shape_, item.start.length, end),
                                  FirstStepBytes(shape_, item.start, first));
    return item.start.match_bytes + bytes;
  }

  // With nothing running, the least budget is enough to go on token by token.
  void StartAlone(Item item) {
    const size_t bytes =
        item.start.match_bytes + FirstStepBytes(shape_, item.start, item.start.length + 1);
    if (bytes > draft_.bytes_left)
      item = draft_.MakeNew(item.index, NeedWithoutMatch(cache_, item.sequence->ns), false);
    Add(item);
  }

  void Add(const Item& item) {
    draft_.prompts.push_back(static_cast<uint32_t>(draft_.items.size()));
    draft_.items.push_back(item);
    ++num_new_;
  }

  void PreemptFor(const Item& item) {
    const int32_t priority = item.sequence->priority;
    const auto may_go = [&](const Item& other) {
      if (other.is_protected || other.is_new || other.is_gone) return false;
      return other.sequence->priority > priority ||
             (item.has_turn && other.sequence->priority < priority);
    };
    if (std::ranges::none_of(draft_.items, may_go)) return;
    size_t staying = 0;  // promised to those that stay
    for (const uint32_t prompt : draft_.prompts)
      if (const Item& other = draft_.items[prompt]; !may_go(other))
        staying += other.is_new ? NeededBytes(other) : draft_.PromisedBytes(other);
    const size_t needed = NeededBytes(item) + KeptBytes(*item.sequence);
    const bool has_slot = HasSlot();
    if (!draft_.MakeRoom(staying + needed, may_go)) return;
    if (!has_slot && draft_.decision.preempted.empty()) draft_.PreemptLast(may_go);
    draft_.bytes_left -= std::min(draft_.bytes_left, needed);  // it starts in the next step
  }

  static constexpr uint32_t kNobody = UINT32_MAX;

  StepDraft& draft_;
  const KvCache& cache_;
  const KvShape& shape_;
  const size_t budget_;
  uint32_t turn_ = kNobody;
  // It did not fit: after it only tenants with nothing running start, of the same priority.
  const ScheduledSequence* blocked_ = nullptr;
  uint32_t num_new_ = 0;
  size_t promised_ = 0;  // to prompts that run or start
  size_t reserved_ = 0;  // full lengths of protected ones
};

}  // namespace

bool ComputesSamePage(const KvCache& cache, const StepDraft::Item& leader,
                      const StepDraft::Item& follower) {
  const uint32_t page_size = cache.shape().page_size, page = follower.length() / page_size;
  if (leader.node() != follower.node() || leader.length() / page_size != page) return false;
  const size_t end = size_t{page + 1} * page_size;
  if (leader.num_known() < end || follower.sequence->matched_tokens().size() <= end) return false;
  if (!cache.keeps_prefixes() || leader.sequence->is_private || follower.sequence->is_private)
    return false;
  if (!follower.is_new && follower.length() % page_size != 0) return false;
  const NodeId node = follower.node();
  if (page != (cache.tree().is_root(node) ? 0 : cache.tree().nodes()[node].depth + 1)) return false;
  const auto tokens = [&](const StepDraft::Item& item) {
    return item.sequence->tokens.subspan(end - page_size, page_size);
  };
  return std::ranges::equal(tokens(leader), tokens(follower));
}

void Admit(StepDraft* draft) { Admitter(draft).Run(); }

}  // namespace quire
