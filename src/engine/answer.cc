#include "engine/answer.h"

#include <bit>
#include <utility>

#include "base/check.h"
#include "base/fnv.h"
#include "base/seconds.h"

namespace quire {

std::string_view FinishReasonName(FinishReason reason) {
  switch (reason) {
    case FinishReason::kNone:
      return "none";
    case FinishReason::kEndOfAnswer:
    case FinishReason::kStopToken:
    case FinishReason::kStopString:
      return "stop";
    case FinishReason::kMaxTokens:
      return "length";
    case FinishReason::kContextFull:
      return "context";
    case FinishReason::kMemoryFull:
      return "memory";
    case FinishReason::kCancelled:
      return "cancelled";
    case FinishReason::kError:
      return "error";
  }
  return "?";
}

std::string_view AnswerPhaseName(AnswerPhase phase) {
  switch (phase) {
    case AnswerPhase::kQueued:
      return "queued";
    case AnswerPhase::kPrefill:
      return "prefill";
    case AnswerPhase::kDecode:
      return "decode";
    case AnswerPhase::kEnded:
      return "ended";
  }
  return "?";
}

uint64_t HashOfLogits(std::span<const float> logits) {
  uint64_t hash = kFnvStart;
  for (const float logit : logits) hash = FnvStep(hash, std::bit_cast<uint32_t>(logit));
  return hash;
}

Answer::Answer(uint64_t id, const Request& request, uint32_t most_tokens)
    : id_(id), submitted_(std::chrono::steady_clock::now()), on_news_(request.on_news) {
  prompt_.prompt_len = static_cast<uint32_t>(request.prompt.size());
  if (request.prompt_logprobs.has_value()) {
    prompt_logprobs_ = LogprobTable(request.prompt.size() - 1, *request.prompt_logprobs);
    num_prompt_logprobs_ = 1;
  }
  for (uint32_t i = 0; i < request.num_choices; ++i) {
    Choice& choice = choices_.emplace_back();
    choice.tokens = LazyArray<TokenId>(most_tokens);
    if (request.sampling.top_logprobs.has_value())
      choice.logprobs.emplace(most_tokens, static_cast<uint32_t>(*request.sampling.top_logprobs));
    if (request.keeps_times) choice.seconds = LazyArray<double>(most_tokens);
    if (request.keeps_logits_hashes) choice.logits_hashes = LazyArray<uint64_t>(most_tokens);
  }
}

uint32_t Answer::Wait(uint32_t choice, uint32_t seen, std::chrono::milliseconds most) const {
  const auto until = std::chrono::steady_clock::now() + most;
  for (;;) {
    const uint32_t news = news_.value();
    const bool has_ended = ended(choice);
    const uint32_t count = choices_[choice].num_tokens.load(std::memory_order_acquire);
    if (count > seen || has_ended) return count;
    const auto rest =
        std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    if (rest.count() <= 0) return count;
    news_.Wait(news, rest);
  }
}

Status Answer::WaitForAll() const {
  Status first = OkStatus();
  for (uint32_t i = 0; i < num_choices(); ++i) {
    Wait(i, UINT32_MAX);
    if (first.ok()) first = status(i);
  }
  return first;
}

std::span<const TokenId> Answer::tokens(uint32_t choice) const {
  const Choice& c = choices_[choice];
  return std::span<const TokenId>(c.tokens).first(c.num_tokens.load(std::memory_order_acquire));
}

Logprobs Answer::logprobs(uint32_t choice, uint32_t i) const {
  QUIRE_CHECK(choices_[choice].logprobs.has_value() && i < tokens(choice).size());
  return choices_[choice].logprobs->Get(i);
}

Logprobs Answer::prompt_logprob(uint32_t i) const {
  QUIRE_CHECK(i >= 1 && i < num_prompt_logprobs());
  return prompt_logprobs_.Get(i - 1);
}

double Answer::token_seconds(uint32_t choice, uint32_t i) const {
  QUIRE_CHECK(i < tokens(choice).size());
  return choices_[choice].seconds[i];
}

uint64_t Answer::logits_hash(uint32_t choice, uint32_t i) const {
  QUIRE_CHECK(i < tokens(choice).size());
  return choices_[choice].logits_hashes[i];
}

bool Answer::ended(uint32_t choice) const {
  return choices_[choice].ended.load(std::memory_order_acquire);
}

double Answer::mean_logprob(uint32_t choice) const {
  const auto count = static_cast<uint32_t>(tokens(choice).size());
  double sum = 0;
  for (uint32_t i = 0; i < count; ++i) sum += logprobs(choice, i).sampled;
  return count > 0 ? sum / count : 0;
}

void Answer::Notify() {
  has_news_ = false;
  news_.Raise();
  if (on_news_) on_news_();
}

double Answer::SecondsSinceSubmit() const { return SecondsSince(submitted_); }

void Answer::PushPromptLogprob(const Logprobs& logprobs) {
  const uint32_t i = num_prompt_logprobs_.load(std::memory_order_relaxed);
  prompt_logprobs_.Set(i - 1, logprobs);
  num_prompt_logprobs_.store(i + 1, std::memory_order_release);
}

void Answer::Push(uint32_t choice, TokenId id, const Logprobs& logprobs,
                  std::span<const float> logits) {
  Choice& c = choices_[choice];
  const uint32_t i = c.num_tokens.load(std::memory_order_relaxed);
  QUIRE_CHECK(i < c.tokens.size());
  c.tokens[i] = id;
  if (c.logprobs.has_value()) c.logprobs->Set(i, logprobs);
  if (c.seconds.size() > 0) c.seconds[i] = SecondsSinceSubmit();
  if (c.logits_hashes.size() > 0) c.logits_hashes[i] = HashOfLogits(logits);
  c.num_tokens.store(i + 1, std::memory_order_release);
}

void Answer::Finish(uint32_t choice, FinishReason reason, Status status,
                    std::optional<TokenId> stop_token) {
  Choice& c = choices_[choice];
  c.finish_reason = reason;
  c.status = std::move(status);
  c.stop_token = stop_token;
  c.ended.store(true, std::memory_order_release);
}

}  // namespace quire
