#include <algorithm>
#include <vector>

#include "base/errors.h"
#include "cache/kv_need.h"
#include "schedule/schedule.h"
#include "schedule/start_need.h"

namespace quire {
namespace {

enum class Fate { kNone, kRefused, kPreempted, kAdmitted };

}  // namespace

Status CheckDecision(const ScheduleState& state, const ScheduleLimits& limits,
                     const StepDecision& decision) {
  const KvCache& cache = *state.cache;
  std::vector<Fate> fates(state.sequences.size());
  std::vector<StartNeed> needs(state.sequences.size());
  size_t left = cache.available_bytes(), taken = 0;
  uint32_t num_running = 0;
  for (const ScheduledSequence& sequence : state.sequences)
    num_running += sequence.is_running() ? 1 : 0;
  for (const Refusal& refusal : decision.refused) {
    if (refusal.needed_bytes <= cache.pool().budget_bytes())
      return Internal("[schedule.2] sequence {} is refused but fits",
                      state.sequences[refusal.index].id);
    fates[refusal.index] = Fate::kRefused;
  }
  for (const uint32_t index : decision.preempted) {
    const ScheduledSequence& sequence = state.sequences[index];
    if (!sequence.is_running() || fates[index] != Fate::kNone ||
        (sequence.num_preemptions >= limits.most_preemptions && decision.parts.size() > 1))
      return Internal("[schedule.2] sequence {} is preempted, after {} times before", sequence.id,
                      sequence.num_preemptions);
    fates[index] = Fate::kPreempted;
  }
  // At least; what only preempted ones share is free too.
  for (const uint32_t index : decision.preempted)
    left += state.sequences[index].pages->ReleasableBytes();
  for (const Admission& admission : decision.admitted) {
    const ScheduledSequence& sequence = state.sequences[admission.index];
    if (sequence.is_running() || fates[admission.index] != Fate::kNone ||
        !decision.preempted.empty())
      return Internal("[schedule.2] sequence {} is admitted", sequence.id);
    fates[admission.index] = Fate::kAdmitted;
    needs[admission.index] = admission.takes_match
                                 ? NeedWithMatch(cache, sequence.ns, sequence.matched_tokens())
                                 : NeedWithoutMatch(cache, sequence.ns);
    taken += needs[admission.index].match_bytes;
    ++num_running;
  }
  uint64_t num_tokens = 0;
  std::vector<bool> has_part(state.sequences.size());
  for (const StepPart& part : decision.parts) {
    const ScheduledSequence& sequence = state.sequences[part.index];
    const bool is_new = fates[part.index] == Fate::kAdmitted;
    if (has_part[part.index] || part.num_tokens == 0 || (!sequence.is_running() && !is_new) ||
        (sequence.is_running() && fates[part.index] != Fate::kNone))
      return Internal("[schedule.2] sequence {} has a part of {} tokens", sequence.id,
                      part.num_tokens);
    has_part[part.index] = true;
    num_tokens += part.num_tokens;
    const StartNeed& need = needs[part.index];
    const uint32_t end = part.num_tokens + (is_new ? need.begin : sequence.pages->next_position());
    if (end > sequence.tokens.size())
      return Internal("[schedule.1] sequence {} has {} tokens, is to compute {}", sequence.id,
                      sequence.tokens.size(), end);
    taken += is_new ? FirstStepBytes(cache.shape(), need, end) : sequence.pages->BytesNeeded(end);
  }
  if (num_tokens > limits.token_budget || taken > left)
    return Internal("[schedule.1] a step of {} tokens and {} bytes; there are {} bytes", num_tokens,
                    taken, left);
  for (const Admission& admission : decision.admitted)
    if (!has_part[admission.index]) return Internal("[schedule.2] an admission without a part");
  if (num_running - decision.preempted.size() > limits.max_running && !decision.admitted.empty())
    return Internal("[schedule.1] {} sequences run", num_running);
  if (state.sequences.size() > decision.refused.size() && decision.parts.empty() &&
      decision.preempted.empty() && cache.pool().pinned_bytes() == 0)
    return Internal("[schedule.3] {} sequences, and nothing is done", state.sequences.size());
  return OkStatus();
}

}  // namespace quire
