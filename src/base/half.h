// IEEE 754 half precision and bfloat16, bit by bit, for any machine. The vector kernels use the
// hardware's conversions, which agree with these (half_test.cc compares all 2^16 halves).
#pragma once

#include <bit>
#include <cstdint>

namespace quire {

inline float HalfToFloat(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t magnitude = half & 0x7FFFu;
  if (magnitude >= 0x7C00u)  // infinity and NaN (made quiet, as the hardware does)
    return std::bit_cast<float>(sign | 0x7F800000u | (magnitude & 0x3FFu) << 13 |
                                (magnitude > 0x7C00u ? 0x00400000u : 0u));
  if (magnitude >= 0x0400u) return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000u));
  const float subnormal = static_cast<float>(magnitude) * 0x1p-24f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(subnormal));
}

// Rounds to nearest, ties to even. Overflow gives infinity; NaN stays a (quiet) NaN.
inline uint16_t FloatToHalf(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint16_t sign = static_cast<uint16_t>(bits >> 16 & 0x8000u);
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u)
    return static_cast<uint16_t>(sign | 0x7E00u | (magnitude >> 13 & 0x1FFu));
  if (magnitude >= 0x477FF000u) return static_cast<uint16_t>(sign | 0x7C00u);  // >= 65,520
  if (magnitude < 0x38800000u) {  // below 2^-14: the adder rounds to a multiple of 2^-24
    const float rounded = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(rounded) - 0x3F000000u));
  }
  const uint32_t odd = magnitude >> 13 & 1u;
  return static_cast<uint16_t>(sign | ((magnitude - 0x38000000u + 0xFFFu + odd) >> 13));
}

// As FloatToHalf, but finite values beyond the range become +-65,504 (h(x) of docs/formats.md).
inline uint16_t FloatToHalfSaturated(float value) {
  const uint32_t magnitude = std::bit_cast<uint32_t>(value) & 0x7FFFFFFFu;
  if (magnitude >= 0x477FE000u && magnitude < 0x7F800000u)
    return static_cast<uint16_t>((std::bit_cast<uint32_t>(value) >> 16 & 0x8000u) | 0x7BFFu);
  return FloatToHalf(value);
}

inline float BFloat16ToFloat(uint16_t bf16) {
  return std::bit_cast<float>(static_cast<uint32_t>(bf16) << 16);
}

}  // namespace quire
