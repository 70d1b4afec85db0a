// Generation: one answer to one prompt, token by token.
//
// Joins the engine (logits), the sampler (the next token) and, where the model has text, the
// detokenizer. Not here: batches and schedules (a later layer), chat templates (text/).
//
// Threading: as the engine.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "engine/engine.h"
#include "engine/request.h"
#include "engine/sampler.h"
#include "text/tokenizer.h"

namespace quire {

struct GenerationParams {
  SamplingParams sampling;
  uint32_t max_tokens = 0;  // 0: until the model ends or the context is full
};

struct Generation {
  // The answer, without the token that ended it. With a stop string: with its tokens and what the
  // last of them brought behind it, which stand in the sequence too.
  std::vector<TokenId> ids;
  std::vector<Logprobs> logprobs;  // of ids; empty if none were asked for
  // The first so many of ids belong to `text`: all but those that a stop string cut off.
  size_t num_text_ids = 0;
  std::string text;  // empty if the model has no text
  FinishReason finish_reason = FinishReason::kEndOfAnswer;
  std::optional<TokenId> stop_token;    // that ended the answer: kEndOfAnswer and kStopToken
  std::optional<uint32_t> stop_string;  // its place in stop_strings: kStopString
  uint32_t prompt_len = 0;              // tokens
  uint32_t num_cached = 0;              // prompt tokens whose KV was there already
  MatchStop match_stop = MatchStop::kNamespace;  // why not more of them
  double prompt_seconds = 0;                     // to compute the rest of the prompt
  double first_token_seconds = 0;                // to the first token, from the call
  double decode_seconds = 0;                     // all tokens after the first; 0 without one
};

// Answers `prompt`, all its ids from the start of the conversation, and waits for it. What the
// prefix tree has of them is used again.
//
// `on_text` (may be empty) gets each piece of text as soon as it is whole characters and no stop
// string can begin in it. `cancelled` (may be null) is looked at several times a second. Errors:
// those of Engine::Submit, and what ended the answer.
StatusOr<Generation> Generate(Engine& engine, std::span<const TokenId> prompt,
                              const GenerationParams& params,
                              const std::function<void(std::string_view)>& on_text,
                              const std::atomic<bool>* cancelled = nullptr);

}  // namespace quire
