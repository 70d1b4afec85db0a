#include "reference/dequantise.h"

#include <cmath>
#include <cstring>

#include "base/errors.h"

namespace quire {
namespace {

template <class T>
T Load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// IEEE half precision from its fields: sign, 5 bits of exponent, 10 of fraction.
double Half(const std::byte* at) {
  const auto bits = Load<uint16_t>(at);
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  if (exponent == 31) return fraction == 0 ? sign * INFINITY : NAN;
  if (exponent == 0) return sign * fraction * 0x1p-24;
  return sign * (1024 + fraction) * (uint32_t{1} << exponent) * 0x1p-25;
}

// The upper half of an f32.
double BFloat16(const std::byte* at) {
  const uint32_t bits = uint32_t{Load<uint16_t>(at)} << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// Element i of a block of 32 four-bit codes: low nibbles first, then high ones.
int Nibble(const std::byte* codes, int i) {
  const int byte = std::to_integer<int>(codes[i % 16]);
  return i < 16 ? byte & 15 : byte >> 4;
}

int Byte(const std::byte* at) { return std::to_integer<int>(*at); }

// Bit i of the u32 at `at`.
int Bit(const std::byte* at, int i) { return static_cast<int>(Load<uint32_t>(at) >> i & 1); }

// What non-linear 4-bit codes stand for.
constexpr int kIq4[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
constexpr double kMxfp4[16] = {0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6};

// Two bits of element i: 64 bytes hold 256 codes, 32 neighbours side by side, four to a byte.
int TwoBits(const std::byte* codes, int i) {
  return Byte(codes + 32 * (i / 128) + i % 32) >> 2 * (i % 128 / 32) & 3;
}
// Four bits of element i, in 128 bytes: 32 neighbours in low nibbles, the next 32 in high ones.
int FourBits(const std::byte* codes, int i) {
  return Byte(codes + 32 * (i / 64) + i % 32) >> 4 * (i % 64 / 32) & 15;
}

// Scale and minimum of group g = i / 32, six bits each, in 12 bytes (Q4_K, Q5_K).
int Scale6(const std::byte* s, int g) {
  return g < 4 ? Byte(s + g) & 63 : (Byte(s + g + 4) & 15) + 16 * (Byte(s + g - 4) >> 6);
}
int Minimum6(const std::byte* s, int g) {
  return g < 4 ? Byte(s + g + 4) & 63 : (Byte(s + g + 4) >> 4) + 16 * (Byte(s + g) >> 6);
}

double Q3K(const std::byte* at, int i) {  // 32 high bits; 64 codes; 12 scales; d
  const std::byte* s = at + 96;
  const int g = i / 16;
  const int scale =
      (Byte(s + g % 8) >> 4 * (g / 8) & 15) + 16 * (Byte(s + 8 + g % 4) >> 2 * (g / 4) & 3);
  const int high = Byte(at + i % 32) >> i / 32 & 1;
  return Half(at + 108) * (scale - 32) * (TwoBits(at + 32, i) - (high != 0 ? 0 : 4));
}

double Q6K(const std::byte* at, int i) {  // 128 low; 64 high; 16 scales s8; d
  const int n = i / 128, r = i % 128;
  const int low = Byte(at + 64 * n + r % 64) >> 4 * (r / 64) & 15;
  const int high = Byte(at + 128 + 32 * n + r % 32) >> 2 * (r / 32) & 3;
  return Half(at + 208) * Load<int8_t>(at + 192 + i / 16) * (low + 16 * high - 32);
}

double Iq4Xs(const std::byte* at, int i) {  // d; u16 high bits of scales; 4 low ones; 128 codes
  const int g = i / 32;
  const int low = Byte(at + 4 + g / 2) >> 4 * (g % 2) & 15;
  const int scale = low + 16 * (Load<uint16_t>(at + 2) >> 2 * g & 3);
  const int code = Byte(at + 8 + 16 * g + i % 16) >> 4 * (i % 32 / 16) & 15;
  return Half(at) * (scale - 32) * kIq4[code];
}

// Element i of the block at `at`. d, m: f16 scale and minimum at the front of a block; K types
// have them behind scales and codes, or both first.
double Element(WeightType type, const std::byte* at, int i) {
  switch (type) {
    case WeightType::kF32:
      return Load<float>(at);
    case WeightType::kF16:
      return Half(at);
    case WeightType::kBf16:
      return BFloat16(at);
    case WeightType::kQ8_0:  // d; 32 signed bytes
      return Half(at) * Load<int8_t>(at + 2 + i);
    case WeightType::kQ4_0:  // d; 16 bytes of nibbles
      return Half(at) * (Nibble(at + 2, i) - 8);
    case WeightType::kQ4_1:  // d; m; 16 bytes of nibbles
      return Half(at) * Nibble(at + 4, i) + Half(at + 2);
    case WeightType::kQ5_0:  // d; 32 fifth bits; 16 bytes of nibbles
      return Half(at) * (Nibble(at + 6, i) + 16 * Bit(at + 2, i) - 16);
    case WeightType::kQ5_1:  // d; m; 32 fifth bits; 16 bytes of nibbles
      return Half(at) * (Nibble(at + 8, i) + 16 * Bit(at + 4, i)) + Half(at + 2);
    case WeightType::kQ2K:  // 16 scales and minimums; 64 codes; d; m
      return Half(at + 80) * (Byte(at + i / 16) & 15) * TwoBits(at + 16, i) -
             Half(at + 82) * (Byte(at + i / 16) >> 4);
    case WeightType::kQ3K:
      return Q3K(at, i);
    case WeightType::kQ4K:  // d; m; 12 scales and minimums; 128 codes
      return Half(at) * Scale6(at + 4, i / 32) * FourBits(at + 16, i) -
             Half(at + 2) * Minimum6(at + 4, i / 32);
    case WeightType::kQ5K:  // d; m; 12 scales and minimums; 32 fifth bits; 128 codes
      return Half(at) * Scale6(at + 4, i / 32) *
                 (FourBits(at + 48, i) + 16 * (Byte(at + 16 + i % 32) >> i / 32 & 1)) -
             Half(at + 2) * Minimum6(at + 4, i / 32);
    case WeightType::kQ6K:
      return Q6K(at, i);
    case WeightType::kIq4Nl:  // d; 16 bytes of nibbles
      return Half(at) * kIq4[Nibble(at + 2, i)];
    case WeightType::kIq4Xs:
      return Iq4Xs(at, i);
    case WeightType::kMxfp4:  // exponent; 16 bytes of nibbles
      return std::ldexp(kMxfp4[Nibble(at + 1, i)], Byte(at) - 127);
  }
  return NAN;
}

}  // namespace

StatusOr<std::vector<double>> Dequantise(WeightType type, std::span<const std::byte> bytes,
                                         int64_t num_elements) {
  const int block = BlockElements(type), stride = BlockBytes(type);
  if (num_elements % block != 0 ||
      num_elements / block > static_cast<int64_t>(bytes.size()) / stride)
    return InvalidFile("{} elements of {} do not lie in {} bytes", num_elements,
                       WeightTypeName(type), bytes.size());
  std::vector<double> values(static_cast<size_t>(num_elements));
  for (int64_t e = 0; e < num_elements; ++e)
    values[static_cast<size_t>(e)] =
        Element(type, bytes.data() + e / block * stride, static_cast<int>(e % block));
  return values;
}

}  // namespace quire
