#include "model/rope_angles.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"

namespace quire {
namespace {

// The pair at which a wave turns `turns` times over the original context.
double PairOfTurns(double turns, const RopeShape& rope) {
  return rope.dimension_count *
         std::log(rope.original_context_length / (turns * 2 * std::numbers::pi)) /
         (2 * std::log(rope.freq_base));
}

double YarnMagnitude(const RopeShape& rope) {
  const double log_factor = std::log(std::max(rope.factor, 1.0));
  return (1 + 0.1 * log_factor) / (1 + 0.1 * rope.log_multiplier * log_factor);
}

}  // namespace

RopeAngles::RopeAngles(const RopeShape& rope, std::span<const float> factors) {
  const int num_pairs = rope.dimension_count / 2;
  QUIRE_CHECK(factors.empty() || static_cast<int>(factors.size()) == num_pairs);
  const bool yarn = rope.scaling == RopeScaling::kYarn;
  double low = 0, high = 0;
  if (yarn) {
    low = std::max(0.0, std::floor(PairOfTurns(rope.beta_fast, rope)));
    high = std::min(rope.dimension_count - 1.0, std::ceil(PairOfTurns(rope.beta_slow, rope)));
  }
  for (int j = 0; j < num_pairs; ++j) {
    double frequency = std::pow(rope.freq_base, -2.0 * j / rope.dimension_count);
    if (!factors.empty()) frequency /= factors[j];
    const double scaled = frequency / rope.factor;
    if (yarn) {  // fast waves keep their frequency, slow ones are stretched, a ramp lies between
      const double ramp = 1 - std::clamp((j - low) / std::max(0.001, high - low), 0.0, 1.0);
      frequency = scaled * (1 - ramp) + frequency * ramp;
    } else {
      frequency = scaled;
    }
    frequencies_.push_back(frequency);
  }
  magnitude_ = rope.attn_factor * (yarn ? YarnMagnitude(rope) : 1.0);
}

void RopeAngles::Compute(uint32_t position, float* cos, float* sin) const {
  for (size_t j = 0; j < frequencies_.size(); ++j) {
    const double angle = position * frequencies_[j];
    cos[j] = static_cast<float>(std::cos(angle) * magnitude_);
    sin[j] = static_cast<float>(std::sin(angle) * magnitude_);
  }
}

}  // namespace quire
