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

int Byte(const std::byte* p, int i) { return Read<uint8_t>(p + i); }
int SignedByte(const std::byte* p, int i) { return Read<int8_t>(p + i); }

// Element i (0..31) of 16 bytes of nibbles: low halves first, then high halves.
int Nibble(const std::byte* q, int i) {
  const int byte = Byte(q, i % 16);
  return i < 16 ? byte & 15 : byte >> 4;
}
int Bit(const std::byte* bits, int i) { return Byte(bits, i / 8) >> i % 8 & 1; }

constexpr int kIq4[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
constexpr float kFp4[16] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6, 0, -0.5f, -1, -1.5f, -2, -3, -4, -6};

// S(g) and M(g) of the 12 bytes of Q4_K and Q5_K.
int SixBitScale(const std::byte* s, int g) {
  return g < 4 ? Byte(s, g) & 63 : (Byte(s, g + 4) & 15) + 16 * (Byte(s, g - 4) >> 6);
}
int SixBitMin(const std::byte* s, int g) {
  return g < 4 ? Byte(s, g + 4) & 63 : (Byte(s, g + 4) >> 4) + 16 * (Byte(s, g) >> 6);
}

bool HasMin(WeightType type) {
  return type == WeightType::kQ4_1 || type == WeightType::kQ5_1 || type == WeightType::kQ2K ||
         type == WeightType::kQ4K || type == WeightType::kQ5K;
}

// Element i of a block of 256, by the formulas of docs/formats.md.
FileElement ElementOfK(WeightType type, const std::byte* block, int i) {
  const int c2 = 32 * (i / 128) + i % 32, shift2 = 2 * (i % 128 / 32);
  const int c4 = 32 * (i / 64) + i % 32, shift4 = 4 * (i % 64 / 32);
  const int g = i / 32;
  FileElement e;
  switch (type) {
    case WeightType::kQ2K: {
      const int s = Byte(block, i / 16);
      e.code = static_cast<float>(Byte(block + 16, c2) >> shift2 & 3);
      e.scale = ReadHalf(block + 80);
      e.min = -ReadHalf(block + 82);
      e.sub_scale = s & 15;
      e.sub_min = s >> 4;
      return e;
    }
    case WeightType::kQ3K: {
      const std::byte* s = block + 96;
      const int j = i / 16;
      const int high = Byte(block, i % 32) >> g & 1;
      e.code = static_cast<float>((Byte(block + 32, c2) >> shift2 & 3) - (high ? 0 : 4));
      e.scale = ReadHalf(block + 108);
      e.sub_scale =
          (Byte(s, j % 8) >> 4 * (j / 8) & 15) + 16 * (Byte(s, 8 + j % 4) >> 2 * (j / 4) & 3) - 32;
      return e;
    }
    case WeightType::kQ4K:
    case WeightType::kQ5K: {
      const bool five = type == WeightType::kQ5K;
      const int high = five ? Byte(block + 16, i % 32) >> g & 1 : 0;
      e.code = static_cast<float>((Byte(block + (five ? 48 : 16), c4) >> shift4 & 15) + 16 * high);
      e.scale = ReadHalf(block) * static_cast<float>(SixBitScale(block + 4, g));
      e.min = -ReadHalf(block + 2) * static_cast<float>(SixBitMin(block + 4, g));
      return e;
    }
    case WeightType::kQ6K: {
      const int n = i / 128, r = i % 128;
      const int low = Byte(block, 64 * n + r % 64) >> 4 * (r / 64) & 15;
      const int high = Byte(block + 128, 32 * n + r % 32) >> 2 * (r / 32) & 3;
      e.code = static_cast<float>(low + 16 * high - 32);
      e.scale = ReadHalf(block + 208);
      e.sub_scale = SignedByte(block + 192, i / 16);
      return e;
    }
    case WeightType::kIq4Xs: {
      const int high = Read<uint16_t>(block + 2) >> 2 * g & 3;
      const int x = (Byte(block + 4, g / 2) >> 4 * (g % 2) & 15) + 16 * high;
      e.code = static_cast<float>(kIq4[Byte(block + 8, 16 * g + i % 16) >> 4 * (i % 32 / 16) & 15]);
      e.scale = ReadHalf(block) * static_cast<float>(x - 32);
      return e;
    }
    default:
      QUIRE_CHECK(false);
  }
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
    case WeightType::kQ5_0:
      return {ReadHalf(block), 0.0f,
              static_cast<float>(Nibble(block + 6, i) + 16 * Bit(block + 2, i) - 16)};
    case WeightType::kQ5_1:
      return {ReadHalf(block), ReadHalf(block + 2),
              static_cast<float>(Nibble(block + 8, i) + 16 * Bit(block + 4, i))};
    case WeightType::kIq4Nl:
      return {ReadHalf(block), 0.0f, static_cast<float>(kIq4[Nibble(block + 2, i)])};
    case WeightType::kMxfp4:  // half the scale, twice the value: an integer code
      return {std::ldexp(1.0f, Byte(block, 0) - 128), 0.0f, 2 * kFp4[Nibble(block + 1, i)]};
    default:
      return ElementOfK(matrix.type, block, i);
  }
}

double WeightAt(const FileMatrix& matrix, int row, int k) {
  const FileElement e = ElementAt(matrix, row, k);
  return static_cast<double>(e.scale) * e.sub_scale * static_cast<double>(e.code) +
         static_cast<double>(e.min) * e.sub_min;
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
  const int num_blocks = matrix.num_cols / kActivationBlock;
  float acc = 0.0f;
  for (int b = 0; b < num_blocks; ++b) {
    const size_t at = x.At(m, b);
    int32_t sum = 0, min_sum = 0;
    for (int i = 0; i < kActivationBlock; ++i) {
      const FileElement e = ElementAt(matrix, row, b * kActivationBlock + i);
      const int8_t code = x.codes[at * kActivationBlock + static_cast<size_t>(i)];
      sum += e.sub_scale * static_cast<int32_t>(e.code) * code;
      min_sum += e.sub_min * code;
    }
    const FileElement e = ElementAt(matrix, row, b * kActivationBlock);
    if (matrix.type == WeightType::kQ2K)
      acc = std::fmaf(static_cast<float>(min_sum), e.min * x.scales[at], acc);
    else if (HasMin(matrix.type))
      acc = std::fmaf(e.min, x.scaled_sums[at], acc);
    acc = std::fmaf(static_cast<float>(sum), e.scale * x.scales[at], acc);
  }
  return acc;
}

}  // namespace quire
