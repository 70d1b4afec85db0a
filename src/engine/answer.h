// Answer: what comes back for a request: the tokens of each choice, as they are sampled.
//
// The engine thread writes, any other thread reads: tokens lie in arrays that are large enough from
// the start, behind a count, so that nothing is locked or moved while they come. Whoever waits
// sleeps in the kernel and is woken once a step.
//
// Text is made by the reader (text/detokenizer.h), from tokens alone.
//
// Threading: Engine side by the engine thread; all else by any thread. Shared by both sides.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "base/ids.h"
#include "base/lazy_array.h"
#include "base/status.h"
#include "base/wake_word.h"
#include "cache/prefix_match.h"
#include "engine/logprob_table.h"
#include "engine/request.h"

namespace quire {

// What became of the prompt; whole once the first token is there or a choice has ended.
struct PromptReport {
  uint32_t prompt_len = 0;
  uint32_t num_cached = 0;  // its tokens that were never computed for this request
  MatchStop match_stop = MatchStop::kNamespace;
  uint32_t num_shared = 0;  // its tokens that the cache had, usable or not
  // Its tokens that it brought into the cache, in whole pages: of those that it computed, so that
  // num_cached + num_inserted <= prompt_len.
  uint32_t num_inserted = 0;
  double queue_seconds = 0;        // from Submit until it started
  double first_token_seconds = 0;  // from Submit until the first token
};

// How far a request has come. It does not fall back when a sequence of it is preempted.
enum class AnswerPhase {
  kQueued,   // never started
  kPrefill,  // no token yet
  kDecode,
  kEnded,  // all choices
};
std::string_view AnswerPhaseName(AnswerPhase phase);  // "queued", "prefill", "decode", "ended"

// FNV-1a over the bits of a row of logits, float by float.
uint64_t HashOfLogits(std::span<const float> logits);

class Answer {
 public:
  Answer(uint64_t id, const Request& request, uint32_t most_tokens);

  uint64_t id() const { return id_; }
  uint32_t num_choices() const { return static_cast<uint32_t>(choices_.size()); }

  // Waits until `choice` has more than `seen` tokens or has ended, or for `most`; returns how many
  // tokens it has.
  static constexpr std::chrono::milliseconds kNoLimit = std::chrono::hours(24 * 365);
  uint32_t Wait(uint32_t choice, uint32_t seen, std::chrono::milliseconds most = kNoLimit) const;
  // Waits until all choices have ended; the first error, if any.
  Status WaitForAll() const;

  // The tokens so far, without the one that ended it. The span stays valid.
  std::span<const TokenId> tokens(uint32_t choice) const;
  // Of token i < tokens().size(); requires that the request asked for them.
  Logprobs logprobs(uint32_t choice, uint32_t i) const;
  // Of the prompt's token i, given those before it: 1 <= i < num_prompt_logprobs(). The first has
  // none. `sampled` is that of the prompt's own token.
  Logprobs prompt_logprob(uint32_t i) const;
  // prompt_len once the first token is there, or max_tokens was 0 and it ended; 0 if the request
  // did not ask.
  uint32_t num_prompt_logprobs() const {
    return num_prompt_logprobs_.load(std::memory_order_acquire);
  }
  // Seconds from Submit on; requires keeps_times.
  double token_seconds(uint32_t choice, uint32_t i) const;
  // Requires keeps_logits_hashes; of the logits that token i was sampled from.
  uint64_t logits_hash(uint32_t choice, uint32_t i) const;
  bool ended(uint32_t choice) const;
  AnswerPhase phase() const { return phase_.load(std::memory_order_acquire); }
  // Tokens of the prompt whose KV is there: now while phase() is kPrefill, all of them after that.
  uint32_t num_prompt_computed() const {
    return num_prompt_computed_.load(std::memory_order_relaxed);
  }

  // The rest requires that the choice has ended.
  FinishReason finish_reason(uint32_t choice) const { return choices_[choice].finish_reason; }
  const Status& status(uint32_t choice) const { return choices_[choice].status; }
  std::optional<TokenId> stop_token(uint32_t choice) const { return choices_[choice].stop_token; }
  // Mean log-probability of the sampled tokens; requires logprobs.
  double mean_logprob(uint32_t choice) const;
  uint32_t num_preemptions() const { return num_preemptions_.load(std::memory_order_relaxed); }

  // Tokens of the prompt that were never computed for this request, so far.
  uint32_t num_cached() const { return num_cached_.load(std::memory_order_relaxed); }
  // Requires a first token, or that a choice has ended; queue_seconds is there once phase() is
  // kPrefill.
  const PromptReport& prompt() const { return prompt_; }

  // Asks the engine to end it; takes effect before the next step.
  void Abort() { aborted_.store(true, std::memory_order_relaxed); }
  bool aborted() const { return aborted_.load(std::memory_order_relaxed); }

  // Engine side. Allocates nothing.
  PromptReport& mutable_prompt() { return prompt_; }
  void PushPromptLogprob(const Logprobs& logprobs);  // of token num_prompt_logprobs()
  void Push(uint32_t choice, TokenId id, const Logprobs& logprobs, std::span<const float> logits);
  void Finish(uint32_t choice, FinishReason reason, Status status,
              std::optional<TokenId> stop_token = {});
  void CountPreemption() { num_preemptions_.fetch_add(1, std::memory_order_relaxed); }
  void SetPhase(AnswerPhase phase) { phase_.store(phase, std::memory_order_release); }
  void SetPromptComputed(uint32_t num_tokens) {
    num_prompt_computed_.store(num_tokens, std::memory_order_relaxed);
  }
  void SetCached(uint32_t num_tokens) { num_cached_.store(num_tokens, std::memory_order_relaxed); }
  // False: it was marked already, and Notify is still to come.
  bool MarkNews() { return !std::exchange(has_news_, true); }
  void Notify();  // once a step, after its pushes
  double SecondsSinceSubmit() const;

 private:
  struct Choice {
    std::atomic<uint32_t> num_tokens{0};
    std::atomic<bool> ended{false};
    FinishReason finish_reason = FinishReason::kNone;
    Status status;
    std::optional<TokenId> stop_token;
    LazyArray<TokenId> tokens;
    std::optional<LogprobTable> logprobs;
    LazyArray<double> seconds;
    LazyArray<uint64_t> logits_hashes;
  };

  const uint64_t id_;
  const std::chrono::steady_clock::time_point submitted_;
  std::deque<Choice> choices_;
  PromptReport prompt_;
  LogprobTable prompt_logprobs_;  // row i - 1: token i
  std::atomic<uint32_t> num_preemptions_{0};
  std::atomic<AnswerPhase> phase_{AnswerPhase::kQueued};
  std::atomic<uint32_t> num_prompt_computed_{0}, num_cached_{0};
  std::atomic<uint32_t> num_prompt_logprobs_{0};
  std::atomic<bool> aborted_{false};
  bool has_news_ = false;  // engine side
  const std::function<void()> on_news_;
  WakeWord news_;
};

}  // namespace quire
