// schedule(): which sequences compute how many tokens in the next step.
//
// A pure function of the state it is given: it changes no page and keeps nothing, so a simulator
// runs it as the engine does. The engine applies a decision in this order: refusals, preemptions,
// admissions, then the pages of all parts, then the step.
//
// Order of a step: sequences that decode come first, one token each; what is left of the token
// budget goes to chunks of prompts. See schedule.cc for the rules of order, fairness and memory.
//
// Not here: pages (cache/), tokens and logits (engine/), time: the engine turns measured times into
// the token budget (chunk_controller.h).
//
// Threading: none of its own; the engine thread calls it.
// Cost: O(sequences log sequences), of which waiting ones only as many as might start.
//
// Invariants (CheckDecision(), schedule_test.cc):
//   [schedule.1] The pages of all parts fit into what is free and evictable after the preemptions.
//   [schedule.2] No sequence is preempted that has a part, nor one with most_preemptions.
//   [schedule.3] If any sequence is there, some part, admission, preemption or refusal is.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "cache/kv_cache.h"

namespace quire {

// One token stream, as the scheduler sees it.
struct ScheduledSequence {
  uint64_t id = 0;           // for messages; unique
  uint64_t arrival = 0;      // order of coming: lower came earlier; the same after a preemption
  TenantId tenant = 0;
  int32_t priority = 0;      // lower runs earlier
  NamespaceId ns = 0;
  std::span<const TokenId> tokens = {};  // known: prompt and answer so far; all but the last of an
                                         // answer must be computed before the next can be sampled
  uint32_t most_tokens = 0;  // the length that it may reach
  uint32_t num_preemptions = 0;
  uint64_t waiting_since = 0;         // the step in which it came, or was preempted
  uint64_t last_part = 0;             // the last step in which it computed something; 0: never
  const SequencePages* pages = nullptr;  // null: it waits and holds nothing

  bool is_running() const { return pages != nullptr; }
  uint32_t num_to_compute() const {
    return static_cast<uint32_t>(tokens.size()) - (is_running() ? pages->next_position() : 0);
  }
};

struct ScheduleLimits {
  uint32_t token_budget = 512;     // most tokens of a step
  uint32_t max_running = 256;      // most sequences with pages
  uint32_t most_preemptions = 3;   // of one sequence; then it is protected
  // Kept free when a sequence is admitted, so that those that run can grow: bytes of the budget.
  size_t watermark_bytes = 0;
};

// What each tenant has got: the scheduler reads it, the engine counts.
struct TenantService {
  double share = 1;
  uint64_t served_tokens = 0;
};

struct ScheduleState {
  std::span<const ScheduledSequence> sequences;  // in any order; running and waiting
  std::span<const TenantService> tenants;        // [TenantId]; missing ones have served nothing
  const KvCache* cache = nullptr;
  uint64_t step = 1;  // counts up by one each time
};

struct StepPart {
  uint32_t index = 0;       // into ScheduleState::sequences
  uint32_t num_tokens = 0;  // from its next position on
};

struct Refusal {
  uint32_t index = 0;
  size_t needed_bytes = 0;  // more than the whole budget
};

// Reused from step to step: Schedule clears it, and allocates only while it grows.
struct StepDecision {
  std::vector<Refusal> refused;     // can never fit, however empty the cache
  std::vector<uint32_t> preempted;  // running ones that give their pages back
  std::vector<uint32_t> admitted;   // waiting ones that start now; each has a part
  std::vector<StepPart> parts;      // decodes first
};

void Schedule(const ScheduleState& state, const ScheduleLimits& limits, StepDecision* decision);

// kInternal with the invariant's id if a decision breaks one. For tests.
Status CheckDecision(const ScheduleState& state, const ScheduleLimits& limits,
                     const StepDecision& decision);

}  // namespace quire
