// Products of any weights with f32 activations, on every instruction set.
//
// A span of a panel's weights is widened to f32 in L1 ([k][16 rows]; F32 weights are there
// already), then all row tiles run over it: one FMA a weight and row, in order of k, in one f32
// sum.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "linear/f32_multiply.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include "base/check.h"
#include "linear/epilogue-inl.h"
#include "linear/kernel_parts.h"
#include "linear/weight_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quire {
namespace HWY_NAMESPACE {

constexpr int kF32TileRows = 6;
constexpr int kF32ChunkRows = 48;
constexpr int kPanelGroup = 4;  // panels side by side when rows are few: hides the FMA's latency
constexpr int kSpanCols = 64;   // k of a span, a multiple of the block

// R rows times P panels over `num_cols` of k. w: P spans, w_stride floats apart; acc [P][R][16],
// acc_stride floats from panel to panel.
template <int R, int P>
HWY_NOINLINE void F32Tile(const float* w, size_t w_stride, int num_cols, const float* x,
                          int64_t x_stride, float* acc_at, size_t acc_stride) {
  F32x16 acc[P][R];
  for (size_t p = 0; p < P; ++p)
    for (size_t r = 0; r < R; ++r) acc[p][r] = Load16(acc_at + p * acc_stride + 16 * r);
  for (int k = 0; k < num_cols; ++k) {
    HWY_UNROLL(4)
    for (size_t p = 0; p < P; ++p) {
      const F32x16 z = Load16(w + p * w_stride + 16 * k);
      HWY_UNROLL(8)
      for (size_t r = 0; r < R; ++r)
        acc[p][r] = Fma16(z, Set16(x[static_cast<int64_t>(r) * x_stride + k]), acc[p][r]);
    }
  }
  for (size_t p = 0; p < P; ++p)
    for (size_t r = 0; r < R; ++r) Store16(acc[p][r], acc_at + p * acc_stride + 16 * r);
}

template <int P>
HWY_INLINE void F32Tiles(const float* w, size_t w_stride, int num_cols, int rows, const float* x,
                         int64_t x_stride, float* acc, size_t acc_stride) {
  const int num_tiles = (rows + kF32TileRows - 1) / kF32TileRows;
  for (int t = 0; t < num_tiles; ++t) {
    const int i0 = rows * t / num_tiles, i1 = rows * (t + 1) / num_tiles;
    const float* xi = x + i0 * x_stride;
    float* ai = acc + 16 * i0;
    switch (i1 - i0) {
      case 1:
        F32Tile<1, P>(w, w_stride, num_cols, xi, x_stride, ai, acc_stride);
        break;
      case 2:
        F32Tile<2, P>(w, w_stride, num_cols, xi, x_stride, ai, acc_stride);
        break;
      case 3:
        F32Tile<3, P>(w, w_stride, num_cols, xi, x_stride, ai, acc_stride);
        break;
      case 4:
        F32Tile<4, P>(w, w_stride, num_cols, xi, x_stride, ai, acc_stride);
        break;
      case 5:
        F32Tile<5, P>(w, w_stride, num_cols, xi, x_stride, ai, acc_stride);
        break;
      case 6:
        F32Tile<6, P>(w, w_stride, num_cols, xi, x_stride, ai, acc_stride);
        break;
    }
  }
}

void MultiplyF32(const PackedMatrix& matrix, const Activations& x, int m0, int m1, int p0, int p1,
                 float* out, int64_t out_stride, const Epilogue& epilogue) {
  alignas(64) float acc[kPanelGroup * kF32ChunkRows * 16];
  alignas(64) float span[kPanelGroup * kSpanCols * 16];
  constexpr size_t kAccStride = kF32ChunkRows * 16, kSpanStride = kSpanCols * 16;
  const int num_cols = matrix.num_cols();
  for (int m = m0; m < m1; m += kF32ChunkRows) {
    const int rows = HWY_MIN(kF32ChunkRows, m1 - m);
    const int group = rows <= 2 ? kPanelGroup : 1;
    for (int p = p0; p < p1; p += group) {
      const int panels = HWY_MIN(group, p1 - p);
      for (int j = 0; j < panels; ++j)
        for (int i = 0; i < rows; ++i)
          Store16(Zero16(), acc + static_cast<size_t>(j) * kAccStride + 16 * i);
      for (int k = 0; k < num_cols; k += kSpanCols) {
        const int cols = HWY_MIN(kSpanCols, num_cols - k);
        for (int j = 0; j < panels; ++j)
          WidenWeights(matrix.type(), matrix.panel(p + j), k, cols,
                       span + static_cast<size_t>(j) * kSpanStride);
        const float* xk = x.rows + m * x.row_stride + k;
        if (panels == kPanelGroup) {
          F32Tiles<kPanelGroup>(span, kSpanStride, cols, rows, xk, x.row_stride, acc, kAccStride);
        } else {
          for (size_t j = 0; j < static_cast<size_t>(panels); ++j)
            F32Tiles<1>(span + j * kSpanStride, kSpanStride, cols, rows, xk, x.row_stride,
                        acc + j * kAccStride, kAccStride);
        }
      }
      for (int j = 0; j < panels; ++j) {
        const int first = (p + j) * PackedMatrix::kPanelRows;
        const int lanes = HWY_MIN(PackedMatrix::kPanelRows, matrix.num_rows() - first);
        for (int i = 0; i < rows; ++i)
          WriteOutput(Load16(acc + static_cast<size_t>(j) * kAccStride + 16 * i), first, lanes,
                      epilogue, out + (m + i) * out_stride + first);
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace quire
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quire {

MultiplyFunction F32Multiply(InstructionSet set) {
  switch (set) {
    case InstructionSet::kPortable:
      return N_SCALAR::MultiplyF32;
    case InstructionSet::kAvx2:
      return N_AVX2::MultiplyF32;
    case InstructionSet::kAvx512:
      return N_AVX3::MultiplyF32;
  }
  QUIRE_CHECK(false);
}

}  // namespace quire
#endif  // HWY_ONCE
