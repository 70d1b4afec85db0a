#include "engine/generation.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/errors.h"
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

}  // namespace

std::string_view FinishReasonName(FinishReason reason) {
  switch (reason) {
    case FinishReason::kEndOfAnswer:
      return "stop";
    case FinishReason::kMaxTokens:
      return "length";
    case FinishReason::kContextFull:
      return "context";
    case FinishReason::kMemoryFull:
      return "memory";
    case FinishReason::kCancelled:
      return "cancelled";
  }
  return "?";
}

StatusOr<Generation> Generate(Engine& engine, Sequence& sequence, const Tokenizer& tokenizer,
                              std::span<const TokenId> prompt, const GenerationParams& params,
                              const std::function<void(std::string_view)>& on_text,
                              const std::atomic<bool>* cancelled) {
  QUIRE_RETURN_IF_ERROR(params.sampling.Validate());
  if (prompt.empty()) return InvalidArgument("the prompt has no tokens: give some text");
  const Stopwatch since_call;
  Generation result;
  // The last prompt token is always computed: its logits are what we are after.
  const size_t kept = std::min(CommonPrefix(sequence.tokens(), prompt), prompt.size() - 1);
  sequence.Truncate(kept);
  result.prompt_len = static_cast<uint32_t>(prompt.size());
  result.num_cached = static_cast<uint32_t>(kept);

  Sampler sampler(static_cast<uint32_t>(engine.model().shape().num_tokens));
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
    QUIRE_ASSIGN_OR_RETURN(const SampledToken token, sampler.Sample(logits.value(), params.sampling,
                                                                    sequence.tokens().size()));
    if (result.ids.empty()) result.first_token_seconds = since_call.Seconds();
    if (!params.ignore_end && tokenizer.has_text() && tokenizer.IsEndOfGeneration(token.id)) break;
    result.ids.push_back(token.id);
    if (tokenizer.has_text()) {
      QUIRE_ASSIGN_OR_RETURN(const std::string text, detokenizer.Push(token.id));
      send(text);
    }
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
  send(detokenizer.Finish());
  if (!result.ids.empty())
    result.decode_seconds = since_call.Seconds() - result.first_token_seconds;
  return result;
}

}  // namespace quire
