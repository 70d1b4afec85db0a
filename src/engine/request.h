// Request: what a client wants computed, and how an answer can end.
//
// Threading: plain values.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "engine/sampling_params.h"

namespace quire {

struct Request {
  static constexpr uint32_t kMaxChoices = 128;

  std::vector<TokenId> prompt = {};
  SamplingParams sampling = {};  // Submit prepares it
  // Most tokens of an answer. Unset: as many as the context and the KV memory hold. 0: the prompt
  // is computed and kept, and nothing is sampled.
  std::optional<uint32_t> max_tokens = {};
  uint32_t num_choices = 1;  // 1 to kMaxChoices answers to the one prompt, which share its pages
  int32_t priority = 0;      // lower runs earlier
  std::string tenant = {};
  std::string salt = {};  // a namespace inside the tenant's
  // 0 to 20: log-probabilities of the prompt's tokens under the model, each with so many of the
  // likeliest: Answer::prompt_logprob. All of the prompt is computed then, whatever the cache has
  // of it; what is computed is left for others.
  std::optional<uint32_t> prompt_logprobs = {};
  bool uses_prefixes = true;  // take what the cache has of the prompt, and leave what is computed
  // Stop strings are looked for in a text that has control tokens too, as the vocabulary writes
  // them.
  bool shows_special = false;
  bool keeps_times = false;  // when each token came: Answer::token_seconds
  // A hash of the bits of the logits that each token was sampled from: Answer::logits_hash. For
  // tests and for `quire verify`.
  bool keeps_logits_hashes = false;
  std::string label = {};  // for lists of requests, such as a client's id of it
  // Called on the engine thread at most once a step: after a step that computed a part of the
  // prompt, sampled tokens of any choice, or ended one. Must neither block nor allocate, and not
  // own the Answer, which keeps it.
  std::function<void()> on_news = {};
};

enum class FinishReason {
  kNone,         // it goes on
  kEndOfAnswer,  // the model said so
  kStopToken,    // a token of the request's stop_tokens
  kStopString,   // a stop string in the text
  kMaxTokens,    // as many as were asked for
  kContextFull,  // the context holds no more
  kMemoryFull,   // the whole KV memory holds no more
  kCancelled,
  kError,  // see the status
};
std::string_view FinishReasonName(FinishReason reason);  // "stop", "length", ...

}  // namespace quire
