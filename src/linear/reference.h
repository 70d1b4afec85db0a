// Plain products to hold the kernels against: slow, obvious, from the bytes of a GGUF file.
//
// Not for serving. Nothing here reads packed panels, so a wrong packing shows as well.
// Threads: no state.
#pragma once

#include <cstddef>

#include "linear/activations.h"
#include "linear/weight_type.h"

namespace quire {

// A matrix as it lies in a file: num_rows rows of RowBytes(type, num_cols) bytes. Not owned.
struct FileMatrix {
  WeightType type = WeightType::kF32;
  int num_rows = 0, num_cols = 0;
  const std::byte* bytes = nullptr;
};

// An element is scale * sub_scale * code + min * sub_min. Types whose scale changes within a block
// of 32 have integers sub_scale and sub_min there; float types are 1 * value, with the value in
// `code`.
struct FileElement {
  float scale = 0, min = 0, code = 0;
  int sub_scale = 1, sub_min = 1;
};
FileElement ElementAt(const FileMatrix& matrix, int row, int k);

// The element's exact value (a double holds it for every supported type).
double WeightAt(const FileMatrix& matrix, int row, int k);

// sum over k of W[row][k] * x[k], in double.
double ReferenceDot(const FileMatrix& matrix, int row, const float* x);

// sum over k of |W[row][k] * x[k]|, in double: what error bounds are made of.
double ReferenceAbsDot(const FileMatrix& matrix, int row, const float* x);

// The int8 form for row m of x, by the formulas of linear/kernels.h: the kernels' bits.
float ReferenceInt8Dot(const FileMatrix& matrix, int row, const Int8Rows& x, int m);

}  // namespace quire
