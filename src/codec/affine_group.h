// AffineGroup: n numbers as codes of b bits with one scale and one offset, the group A(y, b) of
// docs/formats.md.
//
//     s = h((max - min) / L)   z = h(min)   code = clamp(rne((y - z) / s), 0, L)   L = 2^b - 1
//     decoded: z + s * code
//
// Codes come from the stored s and z. If s is 0 all codes are 0. A group with a NaN or infinity
// gets scale NaN, offset 0 and codes 0, so that it decodes to NaN.
//
// Threads: pure functions. The same bytes on every machine: f32 + - x / and roundings to nearest
// even, no FMA.
// Paper: Liu et al., KIVI, 2024.
//
// Invariants (affine_group_test.cc):
//   [codec.affine.1] |y - decoded| <= s/2 + 2^-11 (|min| + max - min) + 2^-21 max|y| + 2^(b-25).
#pragma once

#include <cstdint>
#include <span>

#include "base/half.h"

namespace quire {

struct AffineGroup {
  uint16_t scale = 0;   // a half
  uint16_t offset = 0;  // a half
  bool is_finite = true;

  float Decode(uint32_t code) const {
    return HalfToFloat(offset) + HalfToFloat(scale) * static_cast<float>(code);
  }
};

// The group of `values`; its codes go to codes[0, values.size()). Requires: 1 <= bits <= 8, values
// that came from halves or are at most as large; at least one.
AffineGroup EncodeAffineGroup(std::span<const float> values, uint32_t bits, uint8_t* codes);

}  // namespace quire
