// StepLoop: what the engine thread does: schedule, forward, sample, commit, again and again.
//
// Owns all sequences of all requests, running and waiting, and their pages. A request with several
// choices computes its prompt in one sequence, which forks when the first token is sampled.
//
// A step that fails for one sequence (a NaN, logits without a choice) ends that one with an error;
// the others go on with the same bits, and nothing of it enters the prefix tree.
//
// Threading: the engine thread only.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/histogram.h"
#include "base/status.h"
#include "cache/prefix_list.h"
#include "engine/answer.h"
#include "engine/model_runner.h"
#include "engine/queue_limit.h"
#include "engine/request.h"
#include "engine/request_info.h"
#include "engine/sampler.h"
#include "engine/stop_text.h"
#include "schedule/chunk_controller.h"
#include "schedule/schedule.h"
#include "schedule/tenant_ledger.h"
#include "text/detokenizer.h"

namespace quire {

inline constexpr std::array kStepSecondsBounds = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                                  0.075,  0.1,   0.15,   0.2,   0.3,  0.4,   0.5,
                                                  0.75,   1.0,   2.5,    5.0,   10.0};
inline constexpr std::array kStepTokensBounds = {
    1.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0, 16384.0};

struct EngineStats {
  // Now.
  uint32_t num_running = 0, num_waiting = 0;  // sequences
  uint32_t num_deferred = 0;  // of num_waiting: until others have computed a page that they need
                              // too; the rest waits for room
  uint64_t kv_budget_bytes = 0, kv_held_bytes = 0, kv_cached_bytes = 0, kv_pinned_bytes = 0;
  uint64_t kv_free_bytes = 0, kv_committed_bytes = 0, kv_slack_bytes = 0;
  uint64_t used_slots = 0,
           held_slots = 0;  // of running sequences in the full group; each page once
  // Since the start.
  uint64_t num_steps = 0, num_preemptions = 0;
  // Of prompts that are computed, each once, and what of them needed no computation.
  uint64_t prompt_tokens = 0, cached_prompt_tokens = 0;
  uint64_t computed_prompt_tokens = 0;  // also of prompts that are not done, and again when lost
  uint64_t generated_tokens = 0;
  uint64_t num_refused_for_requests = 0, num_refused_for_tokens = 0;  // max_queue, max_queue_tokens
  uint64_t num_finished = 0, num_failed = 0, num_cancelled = 0;
  uint64_t num_chunks_read = 0;   // (page, KV head) pairs
  uint64_t num_kv_saturated = 0;  // finite values beyond the codec's range
  MatchCounts matches;
  double schedule_seconds = 0;  // in schedule and cache work, not in the forward pass
  double forward_seconds = 0;
  Histogram<kStepSecondsBounds> step_seconds;  // of steps that computed something
  Histogram<kStepTokensBounds> step_tokens;    // rows that were computed
};

class StepLoop {
 public:
  // All must outlive it. `tokenizer` may have no text. `queue` may be null; a request that was
  // counted in it leaves it when it starts or ends.
  StepLoop(ModelRunner* runner, const Tokenizer* tokenizer, QueueLimit* queue = nullptr);
  ~StepLoop();

  // A request that was checked; its sampling is prepared. `most_tokens`: of an answer.
  void Add(Request request, std::shared_ptr<Answer> answer, uint32_t most_tokens);

  bool has_work() const { return !sequences_.empty(); }
  // One step; false if there was nothing that it could do (pinned prefixes hold the memory that
  // somebody waits for): try again a little later. Requires: has_work().
  bool Step();
  // Once a second or so, also while idle: memory goes back, retained prefixes expire.
  void Tick();
  // Tick, if another second has begun.
  void TickIfDue() {
    if (now_s() != last_tick_s_) Tick();
  }
  // Ends everything.
  void AbortAll();
  // Who hears of each prefix whose time to be retained is over, within Tick.
  void SetOnExpired(std::function<void(const PrefixInfo&)> hook) { on_expired_ = std::move(hook); }
  // Of cached pages and of steps, against other tenants' shares; > 0; 1 unless set.
  void SetTenantShare(const std::string& tenant, double share);
  // All running sequences give their pages back and wait; they go on with the same bits. For tests.
  void PreemptAll();

  EngineStats stats() const;
  // Those that wait or run, by the time of their coming (forks of one are one).
  std::vector<RequestInfo> requests() const;
  // As Answer::Abort; false: there is no such request.
  bool Abort(uint64_t id);
  KvCache& cache() { return runner_->cache(); }
  // Of the namespace in which requests of this tenant with this salt share pages.
  NamespaceKey KeyOf(const std::string& tenant, const std::string& salt) const;
  ModelRunner& runner() { return *runner_; }
  // Since the start; now_s is what the cache's pins count.
  uint64_t now_ms() const;
  uint32_t now_s() const { return static_cast<uint32_t>(now_ms() / 1000); }

 private:
  struct SharedRequest {
    Request request;
    std::shared_ptr<Answer> answer;
    uint32_t most_tokens;
    NamespaceId ns = 0;
    NamespaceHold ns_hold = {};  // while it waits and runs, `ns` is of its key
    TenantId tenant = 0;
    uint32_t num_unfinished = 0;
  };
  // Tokens that a sequence of this request may take from the cache: it needs the logits of all that
  // come after those that have their log-probability.
  static uint32_t MostMatched(const SharedRequest& shared);
  struct Live {
    std::shared_ptr<SharedRequest> shared;
    uint32_t choice = 0;
    std::vector<TokenId> tokens;  // prompt, then answer
    std::optional<SequencePages> pages;
    SamplerState state;
    std::optional<Detokenizer> detokenizer;  // with stop strings only
    std::optional<StopText> stop_text;
    ScheduledSequence scheduled;
    bool was_admitted = false;
    uint32_t best_position = 0;  // that it was preempted at
    // When it was preempted without having come further; it has not since then.
    std::optional<std::chrono::steady_clock::time_point> futile_since;
    uint32_t num_reached = 0;  // of the prompt's tokens, computed or cached at some time
    uint32_t num_copied = 0;   // of the page that is open, tokens that the cache had
    bool has_ended = false;
    bool is_forking = false;  // computes the prompt for all choices

    std::span<const TokenId> matched_tokens() const {
      return std::span(tokens).first(std::min<size_t>(tokens.size(), scheduled.most_matched));
    }
    // Of its known tokens; 0 while it waits.
    size_t num_to_compute() const {
      return pages.has_value() ? tokens.size() - pages->next_position() : 0;
    }
  };

  static RequestInfo InfoOf(const SharedRequest& shared);
  void TakeAborts();
  void FollowOthers();
  void CountCached(Live& live);
  void Apply(const StepDecision& decision);
  void Admit(Live& live, bool takes_match);
  void Preempt(Live& live);
  void ReserveParts(const StepDecision& decision);
  void RunRows();
  Status ScorePrompt(Live& live, uint32_t end, std::span<const float> logits);
  void CommitRow(size_t row, Live& live, std::span<const float> logits);
  void SampleInto(Live& live, std::span<const float> logits);
  void ForkChoices(Live& live, std::span<const float> logits);
  void Accept(Live& live, const SampledToken& token, std::span<const float> logits);
  // Its pages stay in the tree if `keeps_pages`.
  void End(Live& live, FinishReason reason, const Status& status, bool keeps_pages,
           std::optional<TokenId> stop_token = {});
  void EndFutile(const StepDecision& decision);
  bool WatchForStalls(const StepDecision& decision);
  void MarkNews(const std::shared_ptr<Answer>& answer);
  void TellNews();
  void LeaveQueue(const SharedRequest& shared);
  void RemoveEnded();
  Live MakeLive(std::shared_ptr<SharedRequest> shared, uint32_t choice) const;

  ModelRunner* const runner_;
  const Tokenizer* const tokenizer_;
  QueueLimit* const queue_;
  const std::chrono::steady_clock::time_point start_;
  Sampler sampler_;
  std::vector<std::unique_ptr<Live>> sequences_;
  ScheduleLimits limits_;
  ChunkController chunks_;
  TenantLedger ledger_;
  std::vector<ScheduledSequence> scheduled_;
  Scheduler scheduler_;
  std::vector<StepRows> rows_;
  std::vector<Live*> row_owners_;
  std::vector<std::unique_ptr<Live>> forks_;   // of this step
  std::vector<std::shared_ptr<Answer>> news_;  // to be told, each once
  uint64_t step_ = 0;
  uint64_t next_arrival_ = 1;
  uint32_t last_tick_s_ = 0;
  uint32_t num_deferred_ = 0;                                        // in the last step
  std::optional<std::chrono::steady_clock::time_point> idle_since_;  // of steps that did nothing
  EngineStats counts_;
  std::function<void(const PrefixInfo&)> on_expired_;
};

}  // namespace quire
