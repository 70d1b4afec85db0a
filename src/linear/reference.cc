#include "linear/reference.h"

#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/check.h"
#include "base/half.h"

namespace quire {
namespace {

template <class T>
T Read(const std::byte* p) {
  T x;
  std::memcpy(&x, p, sizeof(T));
  return x;
}

float ReadHalf(const std::byte* p) { return HalfToFloat(Read<uint16_t>(p)); }

// Element i (0..31) of 16 bytes of nibbles: low halves first, then high halves.
int Nibble(const std::byte* q, int i) {
  const int byte = Read<uint8_t>(q + i % 16);
  return i < 16 ? byte & 15 : byte >> 4;
}

}  // namespace

FileElement ElementAt(const FileMatrix& matrix, int row, int k) {
  const int elements = BlockElements(matrix.type);
  const std::byte* block = matrix.bytes + row * RowBytes(matrix.type, matrix.num_cols) +
                           int64_t{k / elements} * BlockBytes(matrix.type);
  const int i = k % elements;
  switch (matrix.type) {
    case WeightType::kF32:
      return {1.0f, 0.0f, Read<float>(block)};
    case WeightType::kF16:
      return {1.0f, 0.0f, ReadHalf(block)};
    case WeightType::kBf16:
      return {1.0f, 0.0f, BFloat16ToFloat(Read<uint16_t>(block))};
    case WeightType::kQ8_0:
      return {ReadHalf(block), 0.0f, static_cast<float>(Read<int8_t>(block + 2 + i))};
    case WeightType::kQ4_0:
      return {ReadHalf(block), 0.0f, static_cast<float>(Nibble(block + 2, i) - 8)};
    case WeightType::kQ4_1:
      return {ReadHalf(block), ReadHalf(block + 2), static_cast<float>(Nibble(block + 4, i))};
    default:
      QUIRE_CHECK(false);
  }
}

double WeightAt(const FileMatrix& matrix, int row, int k) {
  const FileElement e = ElementAt(matrix, row, k);
  return static_cast<double>(e.scale) * static_cast<double>(e.code) + static_cast<double>(e.min);
}

double ReferenceDot(const FileMatrix& matrix, int row, const float* x) {
  double sum = 0;
  for (int k = 0; k < matrix.num_cols; ++k)
    sum += WeightAt(matrix, row, k) * static_cast<double>(x[k]);
  return sum;
}

double ReferenceAbsDot(const FileMatrix& matrix, int row, const float* x) {
  double sum = 0;
  for (int k = 0; k < matrix.num_cols; ++k)
    sum += std::fabs(WeightAt(matrix, row, k) * static_cast<double>(x[k]));
  return sum;
}

float ReferenceInt8Dot(const FileMatrix& matrix, int row, const Int8Rows& x, int m) {
  const int64_t num_blocks = matrix.num_cols / kActivationBlock;
  float acc = 0.0f;
  for (int b = 0; b < num_blocks; ++b) {
    const int64_t at = m * num_blocks + b;
    int32_t sum = 0;
    for (int i = 0; i < kActivationBlock; ++i)
      sum += static_cast<int32_t>(ElementAt(matrix, row, b * kActivationBlock + i).code) *
             x.codes[at * kActivationBlock + i];
    const FileElement e = ElementAt(matrix, row, b * kActivationBlock);
    if (matrix.type == WeightType::kQ4_1) acc = std::fmaf(e.min, x.scaled_sums[at], acc);
    acc = std::fmaf(static_cast<float>(sum), e.scale * x.scales[at], acc);
  }
  return acc;
}

}  // namespace quire
