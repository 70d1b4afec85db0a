#include "engine/generation.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/errors.h"
#include "engine/stop_text.h"
#include "text/detokenizer.h"

namespace quire {
namespace {

class Stopwatch {
 public:
  double Seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

size_t CommonPrefix(std::span<const TokenId> a, std::span<const TokenId> b) {
  return static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

StatusOr<SamplingParams> PreparedSampling(const ModelRunner& engine, const Tokenizer& tokenizer,
                                          const GenerationParams& params) {
  SamplingParams sampling = params.sampling;
  if (params.max_tokens != 0 && sampling.min_tokens > params.max_tokens)
    return InvalidArgument("min_tokens {}: need at most max_tokens, {}", sampling.min_tokens,
                           params.max_tokens);
  if (!tokenizer.has_text() && !sampling.stop_strings.empty())
    return InvalidArgument("stop strings need a model with text: give stop token ids");
  const std::span<const TokenId> ends =
      tokenizer.has_text() ? tokenizer.end_of_generation() : std::span<const TokenId>();
  QUIRE_RETURN_IF_ERROR(
      sampling.Prepare(static_cast<uint32_t>(engine.model().shape().num_tokens), ends));
  return sampling;
}

}  // namespace

StatusOr<Generation> Generate(ModelRunner& engine, Sequence& sequence, const Tokenizer& tokenizer,
                              std::span<const TokenId> prompt, const GenerationParams& params,
                              const std::function<void(std::string_view)>& on_text,
                              const std::atomic<bool>* cancelled) {
  QUIRE_ASSIGN_OR_RETURN(const SamplingParams sampling,
                         PreparedSampling(engine, tokenizer, params));
  if (prompt.empty()) return InvalidArgument("the prompt has no tokens: give some text");
  const Stopwatch since_call;
  Generation result;
  // The last prompt token is always computed: its logits are what we are after.
  const size_t kept = std::min(CommonPrefix(sequence.tokens(), prompt), prompt.size() - 1);
  sequence.Truncate(kept);
  result.prompt_len = static_cast<uint32_t>(prompt.size());
  result.num_cached = static_cast<uint32_t>(kept);

  Sampler sampler(static_cast<uint32_t>(engine.model().shape().num_tokens));
  SamplerState state(sampling, sampler.num_tokens());
  StopText stop_text(sampling);
  Detokenizer detokenizer(&tokenizer, {.starts_text = false});
  const auto send = [&](std::string_view text) {
    if (text.empty()) return;
    result.text += text;
    if (on_text) on_text(text);
  };

  StatusOr<std::span<const float>> logits =
      engine.Compute(sequence, prompt.subspan(kept), 1, cancelled);
  result.prompt_seconds = since_call.Seconds();
  for (;;) {
    if (const StatusCode code = logits.status().code(); !logits.ok()) {
      if (code == StatusCode::kCancelled) {
        result.finish_reason = FinishReason::kCancelled;
      } else if (code == StatusCode::kResourceExhausted && !result.ids.empty()) {
        result.finish_reason = FinishReason::kMemoryFull;  // what there is of the answer stays
      } else {
        return logits.status();
      }
      break;
    }
    QUIRE_ASSIGN_OR_RETURN(const SampledToken token, sampler.Sample(logits.value(), sampling, state,
                                                                    sequence.tokens().size()));
    if (result.ids.empty()) result.first_token_seconds = since_call.Seconds();
    if (sampling.EndsAnswer(token.id)) {
      const bool is_eos = tokenizer.has_text() && tokenizer.IsEndOfGeneration(token.id);
      result.finish_reason = is_eos ? FinishReason::kEndOfAnswer : FinishReason::kStopToken;
      result.stop_token = token.id;
      break;
    }
    state.Commit(token.id);
    result.ids.push_back(token.id);
    if (sampling.top_logprobs.has_value()) result.logprobs.push_back(token.logprobs);
    QUIRE_ASSIGN_OR_RETURN(const std::string text, detokenizer.Push(token.id));
    send(stop_text.Push(text, detokenizer.has_waiting()));
    if (stop_text.stopped()) break;
    if (params.max_tokens != 0 && result.ids.size() >= params.max_tokens) {
      result.finish_reason = FinishReason::kMaxTokens;
      break;
    }
    if (sequence.tokens().size() >= engine.options().context_len) {
      result.finish_reason = FinishReason::kContextFull;
      break;
    }
    logits = engine.Compute(sequence, {&token.id, 1}, 1, cancelled);
  }
  if (!stop_text.stopped()) send(stop_text.Finish(detokenizer.Finish()));
  if (stop_text.stopped()) {
    result.finish_reason = FinishReason::kStopString;
    result.stop_string = stop_text.stop_index();
  }
  result.num_text_ids = stop_text.num_released();
  if (!result.ids.empty())
    result.decode_seconds = since_call.Seconds() - result.first_token_seconds;
  return result;
}

}  // namespace quire
