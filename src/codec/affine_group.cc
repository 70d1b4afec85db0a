#include "codec/affine_group.h"

#include <algorithm>
#include <bit>

namespace quire {
namespace {

constexpr uint16_t kHalfNan = 0x7E00;
constexpr size_t kLanes = 16;  // so that compilers make vectors of the loops

// Adding it leaves an integer up to 2^22 in the low bits, rounded to nearest even.
constexpr float kRound = 12582912.0f;  // 1.5 * 2^23

struct Range {
  float min;
  float max;
  bool is_finite;
};

Range RangeOf(std::span<const float> values) {
  float min[kLanes], max[kLanes];
  uint32_t exponents[kLanes];
  for (size_t lane = 0; lane < kLanes; ++lane) {
    min[lane] = max[lane] = values[0];
    exponents[lane] = 0;
  }
  const auto add = [&](size_t lane, float x) {
    min[lane] = x < min[lane] ? x : min[lane];
    max[lane] = x > max[lane] ? x : max[lane];
    exponents[lane] = std::max(exponents[lane], std::bit_cast<uint32_t>(x) & 0x7F800000u);
  };
  size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes)
    for (size_t lane = 0; lane < kLanes; ++lane) add(lane, values[i + lane]);
  for (; i < values.size(); ++i) add(0, values[i]);
  return {*std::min_element(min, min + kLanes), *std::max_element(max, max + kLanes),
          *std::max_element(exponents, exponents + kLanes) != 0x7F800000u};
}

}  // namespace

AffineGroup EncodeAffineGroup(std::span<const float> values, uint32_t bits, uint8_t* codes) {
  const Range range = RangeOf(values);
  const auto largest = static_cast<float>((1u << bits) - 1);
  AffineGroup group;
  if (!range.is_finite) {
    group = {.scale = kHalfNan, .offset = 0, .is_finite = false};
  } else {
    const float min = range.min + 0.0f;  // -0 becomes +0
    group.scale = FloatToHalfSaturated((range.max - min) / largest);
    group.offset = FloatToHalfSaturated(min);
  }
  if (!range.is_finite || group.scale == 0) {
    std::fill(codes, codes + values.size(), uint8_t{0});
    return group;
  }
  const float offset = HalfToFloat(group.offset);
  const float inverse = 1.0f / HalfToFloat(group.scale);
  for (size_t i = 0; i < values.size(); ++i) {
    float x = (values[i] - offset) * inverse;
    x = x < 0.0f ? 0.0f : x;
    x = x > largest ? largest : x;  // integers at both ends: clamping first changes no rounding
    codes[i] = static_cast<uint8_t>(std::bit_cast<uint32_t>(x + kRound));
  }
  return group;
}

}  // namespace quire
