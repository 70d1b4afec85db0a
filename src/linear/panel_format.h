// PanelFormat: how the quantised types lie in a panel of a PackedMatrix (packed_matrix.h).
//
// The K columns of a panel are blocks of 32. `blocks` of them share a group head; a group is
//   group_halves x [16 rows] f16
//   for each block: block_bytes x [16 rows] u8 or s8 | code_words x [16 rows] of 4 bytes
// so every field of the sixteen rows lies side by side. `four` is four neighbouring columns,
// numbered 0..7 in a block. Code words:
//   4-bit part, word w of 4   low nibbles four w, high nibbles four w + 4; in half-block types
//                             (two scales a block) low nibbles four 2w, high nibbles four 2w + 1
//   2-bit part, word w of 2   bits 2q, 2q + 1 of each byte: four 4w + q
//   1-bit part, one word      bit f of each byte: four f
//   8-bit,      word w of 8   four w, s8
// and an element's code is made of its parts in this order, the lowest bits first:
//
//   type    group halves  block bytes    code          element
//   Q8_0    d             -              8 bit s8      d c
//   Q4_0    d             -              4             d (c - 8)
//   Q4_1    d m           -              4             d c + m
//   Q5_0    d             -              4 + 1         d (c - 16)
//   Q5_1    d m           -              4 + 1         d c + m
//   IQ4_NL  d             -              4             d T[c]
//   MXFP4   -             e              4             2^(e - 128) F[c]
//   Q4_K    d e           S M            4             d S c - e M
//   Q5_K    d e           S M            4 + 1         d S c - e M
//   IQ4_XS  d             x - 32 (s8)    4             d (x - 32) T[c]
//   Q6_K    d             S0 S1 (s8)     4 + 2, halves d S (c - 32)
//   Q3_K    d             S0 S1 (s8)     2 + 1, halves d S (c - 4)
//   Q2_K    d e           S0|M0 S1|M1    2, halves     d S c - e M     (S low nibble, M high)
//
// Threads: constants.
#pragma once

#include <cstdint>

#include "base/check.h"
#include "linear/weight_type.h"

namespace quire {

inline constexpr int kPanelLanes = 16;
inline constexpr int kPanelBlock = 32;

struct PanelFormat {
  int blocks = 1;
  int group_halves = 0;
  int block_bytes = 0;
  int code_words = 0;

  constexpr int head_bytes() const { return 2 * kPanelLanes * group_halves; }
  constexpr int block_head_bytes() const { return kPanelLanes * block_bytes; }
  constexpr int block_stride() const { return block_head_bytes() + 4 * kPanelLanes * code_words; }
  constexpr int group_stride() const { return head_bytes() + blocks * block_stride(); }

  // Where in a panel block `block` of 32 columns begins, and the head of its group.
  constexpr int64_t GroupAt(int block) const { return int64_t{block / blocks} * group_stride(); }
  constexpr int64_t BlockAt(int block) const {
    return GroupAt(block) + head_bytes() + block % blocks * block_stride();
  }
};

// Requires: a quantised type.
constexpr PanelFormat PanelFormatOf(WeightType type) {
  switch (type) {
    case WeightType::kQ8_0:
      return {1, 1, 0, 8};
    case WeightType::kQ4_0:
    case WeightType::kIq4Nl:
      return {1, 1, 0, 4};
    case WeightType::kQ4_1:
      return {1, 2, 0, 4};
    case WeightType::kQ5_0:
      return {1, 1, 0, 5};
    case WeightType::kQ5_1:
      return {1, 2, 0, 5};
    case WeightType::kMxfp4:
      return {1, 0, 1, 4};
    case WeightType::kQ4K:
      return {8, 2, 2, 4};
    case WeightType::kQ5K:
      return {8, 2, 2, 5};
    case WeightType::kIq4Xs:
      return {8, 1, 1, 4};
    case WeightType::kQ6K:
      return {8, 1, 2, 6};
    case WeightType::kQ3K:
      return {8, 1, 2, 3};
    case WeightType::kQ2K:
      return {8, 2, 2, 2};
    case WeightType::kF32:
    case WeightType::kF16:
    case WeightType::kBf16:
      break;
  }
  QUIRE_CHECK(false);
}

// The values of the 4-bit code books.
inline constexpr int8_t kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                          1,    13,   25,  38,  53,  69,  89,  113};
inline constexpr int8_t kMxfp4Values[16] = {0, 1,  2,  3,  4,  6,  8,  12,
                                            0, -1, -2, -3, -4, -6, -8, -12};

}  // namespace quire
