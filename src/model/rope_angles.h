// RopeAngles: cos and sin of the rotary position embedding for any position.
//
// Angles are computed in double and rounded once to f32: angles kept in f32 would drift at 100,000
// positions. The rotation itself is in linear/kernels.h; which values pair up is the
// architecture's (architecture.h).
//
// Threads: constant after construction.
// Papers: Su et al., RoFormer, 2021; Peng et al., YaRN, 2023, sec. 3.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/shape.h"

namespace quire {

class RopeAngles {
 public:
  // `factors` divides the frequency of each pair (tensor rope_freqs): one a pair, or empty.
  RopeAngles(const RopeShape& rope, std::span<const float> factors);

  int num_pairs() const { return static_cast<int>(frequencies_.size()); }

  // cos and sin [num_pairs] of `position`, times the magnitude of the scaling.
  void Compute(uint32_t position, float* cos, float* sin) const;

 private:
  std::vector<double> frequencies_;  // radians a position, [num_pairs]
  double magnitude_ = 1;
};

}  // namespace quire
