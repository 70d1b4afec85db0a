// Activations: M rows of K values, in the forms that matrix products read.
//
// Two forms, fixed at load and part of a model's identity:
//   kF32   every matrix reads the f32 rows.
//   kInt8  quantised matrices (TakesInt8) read codes per row and block of 32; F32, F16 and BF16
//          matrices still read the f32 rows. So a layer that mixes types needs no special case:
//          quantise the rows once and hand the same Activations to each of its products.
//
// This file is the one definition of the rounding. For a block x[0..32) with amax = max |x|:
//   scale = amax / 127, code = round to nearest even of x * (127 / amax), in f32;
//   sum = exact integer sum of the codes; scaled_sum = scale * sum, one f32 product;
//   half_sum = the sums of the first and of the last 16 codes, as two s16 (low, high).
//   amax below 2^-120 (127 / amax would overflow): scale 0, codes 0.
//   amax infinite or NaN: scale NaN, codes 0, so that every product of the row is NaN.
//
// Not here: the vector code (linear/kernels.h), which gives the same bits.
// Threads: plain data; disjoint rows may be written by several threads.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/lazy_array.h"

namespace quire {

enum class ActivationForm { kF32, kInt8 };

inline constexpr int kActivationBlock = 32;

// Rows as codes, block by block: the rows' codes of one block lie side by side, as the products
// read them. num_blocks = K / 32.
struct Int8Rows {
  int num_rows = 0;              // M
  int num_cols = 0;              // K, a multiple of 32
  int8_t* codes = nullptr;       // [num_blocks, M, 32], in order
  int16_t* wide = nullptr;       // the same codes; in each four in the order 0 2 1 3. Only AVX2
                                 // writes and reads them.
  float* scales = nullptr;       // [num_blocks, M]
  int32_t* sums = nullptr;       // [num_blocks, M], sum of the codes
  int32_t* half_sums = nullptr;  // [num_blocks, M], s16 sums of the two halves
  float* scaled_sums = nullptr;  // [num_blocks, M], scale * sum

  // The place of a row's block in the last four; its codes are 32 times as far.
  size_t At(int m, int block) const {
    return static_cast<size_t>(block) * static_cast<size_t>(num_rows) + static_cast<size_t>(m);
  }
};

// What a product reads. `int8` has null pointers when the form is kF32.
struct Activations {
  int num_rows = 0;             // M
  int num_cols = 0;             // K
  const float* rows = nullptr;  // [M, K]; unread by products with int8 codes
  int64_t row_stride = 0;       // floats from one row to the next
  Int8Rows int8 = {};
};

// Owns the room for codes of up to max_rows x max_cols. Allocates in the constructor only; memory
// is committed as rows are written.
class Int8Buffer {
 public:
  Int8Buffer() = default;
  Int8Buffer(int max_rows, int max_cols)
      : max_rows_(max_rows),
        max_cols_(max_cols),
        codes_(static_cast<size_t>(max_rows) * max_cols),
        wide_(codes_.size()),
        scales_(codes_.size() / kActivationBlock),
        sums_(scales_.size()),
        half_sums_(scales_.size()),
        scaled_sums_(scales_.size()) {}

  int max_rows() const { return max_rows_; }
  int max_cols() const { return max_cols_; }

  // Room for num_rows of num_cols. Requires: num_rows <= max_rows, num_cols <= max_cols and a
  // multiple of 32.
  Int8Rows Rows(int num_rows, int num_cols) {
    return {.num_rows = num_rows,
            .num_cols = num_cols,
            .codes = codes_.data(),
            .wide = wide_.data(),
            .scales = scales_.data(),
            .sums = sums_.data(),
            .half_sums = half_sums_.data(),
            .scaled_sums = scaled_sums_.data()};
  }

 private:
  int max_rows_ = 0, max_cols_ = 0;
  LazyArray<int8_t> codes_;
  LazyArray<int16_t> wide_;
  LazyArray<float> scales_;
  LazyArray<int32_t> sums_, half_sums_;
  LazyArray<float> scaled_sums_;
};

// The place in `wide` of element k of a row.
constexpr int WideIndex(int k) { return (k & ~3) | (k & 1) << 1 | (k & 2) >> 1; }

// Round to nearest, ties to even, for |x| < 2^22: the sum has no room for a fraction.
inline int RoundToInt(float x) {
  constexpr float kMagic = 12582912.0f;  // 1.5 * 2^23
  return std::bit_cast<int32_t>(x + kMagic) - std::bit_cast<int32_t>(kMagic);
}

// Two sums of s16 range in one word, the first one low.
inline int32_t PairOfSums(int32_t first, int32_t second) {
  return static_cast<int32_t>((static_cast<uint32_t>(first) & 0xFFFFu) |
                              static_cast<uint32_t>(second) << 16);
}

// One block of row m, by the rule above. Plain code: the reference, and the portable kernel.
inline void QuantiseBlock(const float* x, int m, int block, const Int8Rows& out) {
  uint32_t bits = 0;  // as integers: no trouble with NaN
  for (int i = 0; i < kActivationBlock; ++i) {
    const uint32_t magnitude = std::bit_cast<uint32_t>(x[i]) & 0x7FFFFFFFu;
    bits = magnitude > bits ? magnitude : bits;
  }
  const float amax = std::bit_cast<float>(bits);
  const size_t at = out.At(m, block), first = at * kActivationBlock;
  int32_t sums[2] = {0, 0};
  float scale = 0.0f, inverse = 0.0f;
  const bool finite = bits < 0x7F800000u;
  if (!finite) scale = std::numeric_limits<float>::quiet_NaN();
  if (finite && amax >= 0x1p-120f) {
    scale = amax / 127.0f;
    inverse = 127.0f / amax;
  }
  for (int i = 0; i < kActivationBlock; ++i) {
    const int code = inverse == 0.0f ? 0 : RoundToInt(x[i] * inverse);
    out.codes[first + static_cast<size_t>(i)] = static_cast<int8_t>(code);
    out.wide[first + static_cast<size_t>(WideIndex(i))] = static_cast<int16_t>(code);
    sums[i / 16] += code;
  }
  const int32_t sum = sums[0] + sums[1];
  out.scales[at] = scale;
  out.sums[at] = sum;
  out.half_sums[at] = PairOfSums(sums[0], sums[1]);
  out.scaled_sums[at] = scale * static_cast<float>(sum);
}

}  // namespace quire
