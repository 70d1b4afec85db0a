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

// Element i of the block at `at`. d, m: f16 scale and minimum at the front of a block.
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
    default:
      return NAN;
  }
}

bool IsKnown(WeightType type) {
  return type == WeightType::kF32 || type == WeightType::kF16 || type == WeightType::kBf16 ||
         type == WeightType::kQ8_0 || type == WeightType::kQ4_0 || type == WeightType::kQ4_1;
}

}  // namespace

StatusOr<std::vector<double>> Dequantise(WeightType type, std::span<const std::byte> bytes,
                                         int64_t num_elements) {
  if (!IsKnown(type)) return Unsupported("the reference has no {}", WeightTypeName(type));
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
