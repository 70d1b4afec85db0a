// Simulator: random requests over a tiny KvCache, scheduled step by step as the engine does it, and
// checked. For tests (simulator_test.cc) and long runs (simulator_main.cc).
//
// Instead of a model: K and V of a token are one number, a hash of its tokens from the start and of
// the layer group; the next token of an answer is a function of the hash. A page that holds
// anything else shows.
//
// After each step: CheckDecision, the invariants of cache and sequences, the contents of pages.
// Over a run: tokens are computed at least every kMostIdleSteps steps, each request ends as it
// would alone, and none is preempted more than most_preemptions + 1 times.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "cache/kv_cache.h"
#include "schedule/schedule.h"
#include "schedule/tenant_ledger.h"

namespace quire {

struct SimulatorOptions {
  bool seals = false;   // a page-wise codec
  uint32_t window = 0;  // of a second layer group; 0: there is only the full one
  uint32_t sink_pages = 0;
  uint32_t recent_pages = 0;
  uint32_t page_size = 4;
  uint32_t num_pages = 16;  // open pages that the budget holds
  uint32_t num_tenants = 3;
  uint32_t check_every = 1;  // steps between checks of all contents; 0: never
  bool keeps_prefixes = true;
  ScheduleLimits limits;
  // Of the random requests: how many live at most; what fraction of steps brings one, in 1/100.
  uint32_t most_live = 12, arrivals = 30;
  uint32_t most_prompt = 40, most_answer = 24;  // tokens
  uint64_t seed = 1;
};

// Pools of 8 to 64 pages, all kinds of groups and limits.
SimulatorOptions RandomOptions(uint64_t seed);

// What comes in. Tests add their own; RandomRequest() makes others.
struct SimulatedRequest {
  std::vector<TokenId> prompt;
  uint32_t num_answer = 1;   // tokens to sample
  uint32_t most_answer = 0;  // what it asked for: >= num_answer; 0: num_answer
  TenantId tenant = 0;
  int32_t priority = 0;
  bool is_private = false;
  uint32_t most_matched = UINT32_MAX;
};

class Simulator {
 public:
  explicit Simulator(const SimulatorOptions& options);
  ~Simulator();

  // Returns its id.
  uint64_t Add(const SimulatedRequest& request);
  SimulatedRequest RandomRequest();
  void Abort(uint64_t id);
  // A second answer to the same prompt, from here on; 0 if it does not run.
  uint64_t Fork(uint64_t id);

  // One step and its checks; without requests only the step count goes on.
  Status Step();
  // Steps with random arrivals, aborts and forks; then Drain().
  Status RunRandom(uint64_t num_steps);
  // Steps until all have ended, then nothing may be held.
  Status Drain();

  // What became of a request; kept after its end.
  struct Record {
    uint64_t arrival_step = 0, first_part = 0, first_token = 0, end_step = 0;  // 0: not yet
    uint64_t last_part = 0, longest_wait = 0;  // steps between two parts
    uint64_t num_computed = 0;                 // tokens, all recomputing included
    uint32_t num_preemptions = 0;
    bool is_refused = false, is_aborted = false;
    size_t needed_bytes = 0;  // of a refusal
  };
  const Record& record(uint64_t id) const { return records_[id]; }
  uint64_t num_records() const { return records_.size(); }

  uint64_t step() const { return step_; }
  uint64_t num_live() const { return live_.size(); }
  uint64_t num_computed() const { return num_computed_; }
  uint64_t num_preemptions() const { return num_preemptions_; }
  uint64_t num_cold_starts() const { return num_cold_starts_; }
  const StepDecision& decision() const { return *decision_; }
  KvCache& cache() { return *cache_; }

 private:
  struct Live;

  uint32_t Random(uint32_t below) { return static_cast<uint32_t>(random_() % below); }
  void FillState();
  void ChangeRandomly();
  Status Apply();
  Status Compute(Live& live, uint32_t num_tokens);
  Status End(Live& live);
  Status CheckAll() const;
  Status CheckContents(const Live& live) const;

  const SimulatorOptions options_;
  KvShape shape_;
  std::unique_ptr<KvCache> cache_;
  std::mt19937_64 random_;
  std::vector<NamespaceId> namespaces_;  // [tenant]
  std::vector<std::unique_ptr<Live>> live_;
  std::vector<Record> records_;  // [id]
  TenantLedger tenants_;
  std::vector<ScheduledSequence> sequences_;  // [live]
  ScheduleState state_;
  Scheduler scheduler_;
  const StepDecision* decision_ = nullptr;
  uint64_t step_ = 0, last_progress_ = 0, next_arrival_ = 1;
  uint64_t num_computed_ = 0, num_preemptions_ = 0, num_cold_starts_ = 0;
};

}  // namespace quire
