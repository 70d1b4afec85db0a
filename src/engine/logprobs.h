// Logprobs: natural log-probabilities of tokens under the model: the log-softmax of the raw logits,
// before temperature, penalties, bias and masks, in double.
//
// The same on every machine (engine/exp_log.h); the sum goes by rising id.
//
// Threading: pure functions. Cost: one exp per vocabulary entry, and one comparison for the top.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/ids.h"
#include "engine/sampling_params.h"

namespace quire {

struct TokenLogprob {
  TokenId id = 0;
  double logprob = 0;  // minus infinity for a token that can't be
};

// Of one position. A plain value: no memory of its own.
struct Logprobs {
  double sampled = 0;    // of the sampled token; 0 if none were asked for
  uint32_t num_top = 0;  // of `top`
  // The likeliest, best first, equal ones by rising id. The sampled token may be among them or not.
  std::array<TokenLogprob, SamplingParams::kMaxTopLogprobs> top;
};

//   logits   [num_tokens]  f32  read; no NaN
//   best     the id of the largest
//   num_top  at most kMaxTopLogprobs; more than num_tokens gives num_tokens
void FillLogprobs(std::span<const float> logits, TokenId best, TokenId sampled, uint32_t num_top,
                  Logprobs& logprobs);

}  // namespace quire
