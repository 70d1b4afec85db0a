// Scheduler: which sequences compute how many tokens in the next step.
//
// Schedule() is a pure function of the state it is given: it changes no page, and what it keeps is
// only memory that it uses again. So a simulator runs it as the engine does. A decision is applied
// in this order: refusals, preemptions (pages go back, what is in the tree stays cached),
// admissions, then the pages of all parts (Reserve), then the step (Commit). Before each call the
// engine lets running sequences Follow() the tree.
//
// Rules
//   decodes   Sequences with one token to compute come first. If pages are short, the youngest of
//             the lowest priority is preempted; one that has none to preempt waits with its pages.
//   prompts   What is left of the token budget goes half to the first in order (priority, the
//             tenant that got least for its share, arrival), half to those of the best priority
//             with the fewest tokens left. Every 16th step the one that has waited longest for a
//             part is first. A chunk shrinks to what memory allows.
//   sharing   Of several prompts whose next page has the same tokens, the first in order computes
//             it; the others wait for it in this step (they Follow()). Nothing else ties them: if
//             the first is gone, the next step has another first.
//   admission In order, if the prompt and one page fit beside what running prompts still need and
//             the watermark. A tenant with nothing running may use the watermark. The first that
//             does not fit holds back the others, but tenants with nothing running. If nothing
//             runs, the first always starts.
//   priority  A waiting sequence preempts running ones of lower priority for its room. Every 64th
//             step the one that has waited longest, at least so long, takes its turn as if it were
//             of the best priority: of n that wait each starts within about 64 n steps.
//   protected A sequence that was preempted most_preemptions times is never preempted again. It
//             starts only if all protected ones can reach their full length side by side, so they
//             never wait for each other, and the rest can be preempted for them.
//
// A step that preempts admits nobody: what becomes free is known exactly one step later.
//
// Not here: pages (cache/), tokens and logits (engine/), time: chunk_controller.h turns measured
// times into the token budget.
//
// Threading: none of its own; the engine thread calls it.
// Cost: linear in running sequences (n log n when pages are short); a look at each waiting one, the
// prefix tree is asked for kMostLooks of them at most. Independent of the number of cached pages.
// Paper: Agrawal et al., Sarathi-Serve, OSDI 2024 (chunks beside decodes); Sheng et al., Fairness
// in Serving LLMs, OSDI 2024 (tenants by tokens served).
//
// Invariants (CheckDecision(), simulator_test.cc):
//   [schedule.1] The pages of all parts fit into what is free and evictable after the preemptions,
//                and the step has at most token_budget tokens.
//   [schedule.2] No sequence is preempted that has a part, nor one with most_preemptions (but where
//                nothing else could go on: forks of a protected one, and one that is alone and has
//                no room to copy a page that it shares with an ended one: it starts again).
//   [schedule.3] If any sequence is there that is not refused, and nothing is pinned, there is a
//                part or a preemption.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/ids.h"
#include "cache/kv_cache.h"

namespace quire {

// One token stream, as the scheduler sees it.
struct ScheduledSequence {
  uint64_t id = 0;       // for messages
  uint64_t arrival = 0;  // order of coming: lower came earlier; the same after a preemption, and of
                         // forks (then the order of ScheduleState::sequences counts)
  TenantId tenant = 0;
  int32_t priority = 0;  // lower runs earlier
  NamespaceId ns = 0;
  bool is_private = false;               // shares no pages with others
  std::span<const TokenId> tokens = {};  // known: prompt and answer so far; all of them must be
                                         // computed before the next can be sampled; not empty
  uint32_t most_tokens = 0;              // the length that it may reach
  // Only of its first so many tokens may it take pages of others: it starts and follows as if it
  // ended there (but its pages are shared). 0: none.
  uint32_t most_matched = UINT32_MAX;
  uint32_t num_preemptions = 0;
  uint64_t waiting_since = 0;            // the step in which it came, or was preempted
  uint64_t last_part = 0;                // the last step in which it computed something; 0: never
  const SequencePages* pages = nullptr;  // null: it waits and holds nothing

  bool is_running() const { return pages != nullptr; }
  std::span<const TokenId> matched_tokens() const {
    return tokens.first(std::min<size_t>(tokens.size(), most_matched));
  }
};

struct ScheduleLimits {
  uint32_t token_budget = 512;    // most tokens of a step, >= 1
  uint32_t max_running = 256;     // most sequences with pages
  uint32_t most_preemptions = 3;  // of one sequence; then it is protected
  // Kept free when a sequence is admitted, so that those that run can grow: bytes of the budget.
  size_t watermark_bytes = 0;
};

// What each tenant has got: the scheduler reads it, the engine counts (tenant_ledger.h).
struct TenantService {
  double share = 1;
  uint64_t served_tokens = 0;
};

struct ScheduleState {
  std::span<const ScheduledSequence> sequences;  // in any order, the same in each step
  std::span<const TenantService> tenants;        // [TenantId]; missing ones have served nothing
  const KvCache* cache = nullptr;
  uint64_t step = 1;  // counts up by one each time
};

struct StepPart {
  uint32_t index = 0;       // into ScheduleState::sequences
  uint32_t num_tokens = 0;  // from its next position on
  bool operator==(const StepPart&) const = default;
};

struct Refusal {
  uint32_t index = 0;
  size_t needed_bytes = 0;  // more than the whole budget
  bool operator==(const Refusal&) const = default;
};

struct Admission {
  uint32_t index = 0;
  // With what the cache has of its tokens: NewSequence(ns, tokens, ...). Else empty, since the
  // match would leave no room to go on.
  bool takes_match = true;
  bool operator==(const Admission&) const = default;
};

struct StepDecision {
  std::vector<Refusal> refused;     // can never fit, however empty the cache
  std::vector<uint32_t> preempted;  // running ones that give their pages back
  std::vector<Admission> admitted;  // waiting ones that start now; each has a part
  std::vector<StepPart> parts;      // decodes first
  // Waiting ones that would start, but that another computes their next page. Of those looked at.
  std::vector<uint32_t> deferred;
  bool operator==(const StepDecision&) const = default;
};

class StepDraft;

class Scheduler {
 public:
  Scheduler();
  ~Scheduler();
  // Valid until the next call. The same for equal arguments, whatever was asked before. Allocates
  // only while it grows, and when it looks at waiting sequences.
  const StepDecision& Schedule(const ScheduleState& state, const ScheduleLimits& limits);

 private:
  std::unique_ptr<StepDraft> draft_;
};

// kInternal with the invariant's id if a decision breaks one. For tests.
Status CheckDecision(const ScheduleState& state, const ScheduleLimits& limits,
                     const StepDecision& decision);

}  // namespace quire
