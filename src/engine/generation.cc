#include "engine/generation.h"

#include <chrono>
#include <utility>

#include "base/errors.h"
#include "engine/stop_text.h"
#include "text/detokenizer.h"

namespace quire {
namespace {

constexpr std::chrono::milliseconds kLookAtCancelled(50);

}  // namespace

StatusOr<Generation> Generate(Engine& engine, std::span<const TokenId> prompt,
                              const GenerationParams& params,
                              const std::function<void(std::string_view)>& on_text,
                              const std::atomic<bool>* cancelled) {
  Request request{
      .prompt = {prompt.begin(), prompt.end()}, .sampling = params.sampling, .keeps_times = true};
  const auto is_cancelled = [&] {
    return cancelled != nullptr && cancelled->load(std::memory_order_relaxed);
  };
  if (params.max_tokens != 0) request.max_tokens = params.max_tokens;
  Generation result;
  result.prompt_len = static_cast<uint32_t>(prompt.size());
  result.finish_reason = FinishReason::kCancelled;
  if (is_cancelled()) return result;
  QUIRE_ASSIGN_OR_RETURN(const std::shared_ptr<Answer> answer, engine.Submit(std::move(request)));

  StopText stop_text(params.sampling);
  Detokenizer detokenizer(&engine.tokenizer(), {.starts_text = false});
  const auto send = [&](std::string_view text) {
    if (text.empty()) return;
    result.text += text;
    if (on_text) on_text(text);
  };
  for (;;) {
    const auto seen = static_cast<uint32_t>(result.ids.size());
    const bool had_ended = answer->ended(0);
    const uint32_t count = answer->Wait(0, seen, kLookAtCancelled);
    for (uint32_t i = seen; i < count; ++i) {
      const TokenId id = answer->tokens(0)[i];
      result.ids.push_back(id);
      if (params.sampling.top_logprobs.has_value())
        result.logprobs.push_back(answer->logprobs(0, i));
      QUIRE_ASSIGN_OR_RETURN(const std::string text, detokenizer.Push(id));
      send(stop_text.Push(text, detokenizer.has_waiting()));
      if (stop_text.stopped()) break;
    }
    if (had_ended && count == result.ids.size()) break;
    if (is_cancelled()) answer->Abort();
  }
  QUIRE_RETURN_IF_ERROR(answer->status(0));
  if (!stop_text.stopped()) send(stop_text.Finish(detokenizer.Finish()));
  result.finish_reason = answer->finish_reason(0);
  if (stop_text.stopped()) {
    result.finish_reason = FinishReason::kStopString;
    result.stop_string = stop_text.stop_index();
  }
  result.stop_token = answer->stop_token(0);
  result.num_text_ids = stop_text.num_released();
  const PromptReport& report = answer->prompt();
  result.num_cached = report.num_cached;
  result.match_stop = report.match_stop;
  result.first_token_seconds = report.first_token_seconds;
  result.prompt_seconds = report.first_token_seconds - report.queue_seconds;
  if (!result.ids.empty())
    result.decode_seconds = answer->token_seconds(0, static_cast<uint32_t>(result.ids.size()) - 1) -
                            answer->token_seconds(0, 0);
  return result;
}

}  // namespace quire
