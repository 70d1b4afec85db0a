// PackedMatrix: a weight matrix W [N rows, K columns] in the layout that the kernels read. A
// product is y[n] = sum over k of W[n][k] * x[k], so a row of W is one output.
//
// Panels of 16 rows, one after the other; the last one is filled up with zeros. The same bytes for
// every instruction set. A panel:
//   F32 F16 BF16  [K][16 rows] elements
//   the others    blocks of 32 columns as panel_format.h says: 16 scales, then 16 rows of codes
// Element values are the exact formulas of GGUF (docs/formats.md).
//
// Does not own its memory: the loader does. Not here: products (linear/kernels.h).
// Threads: disjoint row ranges may be packed at the same time; after that it is read-only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "linear/weight_type.h"

namespace quire {

// Whether products with this type read int8 codes when the activation form is kInt8.
constexpr bool TakesInt8(WeightType type) {
  return type != WeightType::kF32 && type != WeightType::kF16 && type != WeightType::kBf16;
}

class PackedMatrix {
 public:
  static constexpr int kPanelRows = 16;

  PackedMatrix() = default;
  // `memory`: PackedBytes(type, num_rows, num_cols) bytes, 64-byte aligned, that outlive this.
  // Requires: num_rows, num_cols >= 1; num_cols a multiple of the type's block.
  PackedMatrix(WeightType type, int num_rows, int num_cols, std::byte* memory);

  // Bytes of the packed form: the file's with the rows filled up to 16, and 1.5 to 3.6 % more for
  // Q4_K, Q5_K, Q3_K and IQ4_XS, whose 6-bit scales are kept in bytes.
  static int64_t PackedBytes(WeightType type, int64_t num_rows, int64_t num_cols);

  WeightType type() const { return type_; }
  int num_rows() const { return num_rows_; }  // N, outputs
  int num_cols() const { return num_cols_; }  // K, inputs
  int num_panels() const { return (num_rows_ + kPanelRows - 1) / kPanelRows; }
  int64_t panel_bytes() const { return panel_bytes_; }
  const std::byte* panel(int p) const { return memory_ + p * panel_bytes_; }

  // Packs rows [first_row, first_row + count) from their bytes in a GGUF file, which may be
  // unaligned. Requires: first_row is a multiple of 16; so is count, unless the range ends at N.
  void PackRows(int first_row, int count, const std::byte* gguf_rows);

  // Row `row` as f32 [K]: each element rounded once (exact but for types with a minimum).
  void DequantiseRow(int row, float* out) const;

 private:
  WeightType type_ = WeightType::kF32;
  int num_rows_ = 0, num_cols_ = 0;
  int64_t panel_bytes_ = 0;
  std::byte* memory_ = nullptr;
};

}  // namespace quire
