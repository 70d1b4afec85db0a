#include "engine/logit_adjustment.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace quire {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// To f32; what is finite stays so. Minus infinity ("never") stays too.
float Rounded(double logit) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  if (std::isinf(logit)) return static_cast<float>(logit);
  return static_cast<float>(std::clamp(logit, -kLargest, kLargest));
}

float Penalised(float logit, uint32_t count, const SamplingParams& params) {
  const double repetition = params.repetition_penalty;
  const double repeated = logit > 0 ? logit / repetition : logit * repetition;
  return Rounded(repeated - double{params.frequency_penalty} * count - params.presence_penalty);
}

bool HoldsEndBack(const SamplingParams& params, const SamplerState& state) {
  return state.num_generated() < params.min_tokens && !params.end_tokens.empty();
}

bool Penalises(const SamplingParams& params, const SamplerState& state) {
  return params.has_penalties() && state.num_generated() > 0;
}

}  // namespace

bool NeedsAdjustment(const SamplingParams& params, const SamplerState& state) {
  return !params.allowed_tokens.empty() || !params.logit_bias.empty() ||
         HoldsEndBack(params, state) || Penalises(params, state);
}

void AdjustLogits(std::span<const float> logits, const SamplingParams& params,
                  const SamplerState& state, std::span<float> adjusted) {
  QUIRE_CHECK(adjusted.size() == logits.size());
  if (params.allowed_tokens.empty()) {
    std::copy(logits.begin(), logits.end(), adjusted.begin());
  } else {
    std::fill(adjusted.begin(), adjusted.end(), kMinusInfinity);
    for (const TokenId id : params.allowed_tokens) adjusted[id] = logits[id];
  }
  for (const LogitBias& bias : params.logit_bias)
    adjusted[bias.id] = Rounded(double{adjusted[bias.id]} + bias.bias);
  if (HoldsEndBack(params, state))
    for (const TokenId id : params.end_tokens) adjusted[id] = kMinusInfinity;
  if (!Penalises(params, state)) return;
  QUIRE_CHECK(state.counts_tokens());
  for (const TokenId id : state.distinct())
    adjusted[id] = Penalised(adjusted[id], state.count(id), params);
}

}  // namespace quire
