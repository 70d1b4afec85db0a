// Logit adjustment: what a request lays on the model's logits before a token is chosen.
//
// Order: allowed tokens (all others become minus infinity); logit bias; end tokens, as long as
// fewer than min_tokens were generated; then, for each token that was generated before, the
// repetition penalty (a positive logit is divided by it, any other multiplied), the frequency
// penalty times its count and the presence penalty. Each step is done in double and rounded to f32
// once; a finite logit stays finite.
//
// The order is vLLM's, the penalties' formulas Keskar et al., CTRL, 2019, sec. 4.1 (repetition) and
// OpenAI's (frequency, presence).
//
// Threading: pure functions. Cost: a copy of the row and one step for each token named.
#pragma once

#include <span>

#include "engine/sampler_state.h"
#include "engine/sampling_params.h"

namespace quire {

// Would AdjustLogits change any row?
bool NeedsAdjustment(const SamplingParams& params, const SamplerState& state);

//   logits    [num_tokens]  f32  read; no NaN
//   adjusted  [num_tokens]  f32  written; not `logits`
// Requires: params prepared for num_tokens; a state made with them.
void AdjustLogits(std::span<const float> logits, const SamplingParams& params,
                  const SamplerState& state, std::span<float> adjusted);

}  // namespace quire
