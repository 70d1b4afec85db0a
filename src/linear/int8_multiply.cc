// Products of quantised weights with int8 activations, on every instruction set.
//
// Two ways through a panel, with the same operations in the same order for each output:
//   few rows   each tile of rows unpacks the panel as it goes: best while weights come from memory;
//   many rows  a span of the panel is widened once (nibbles to bytes, bytes to s16, halves to f32)
//              into L1 and all row tiles run over it: about 5 % faster there.
// A tile's integer sums fill the registers; its f32 sums wait in memory between blocks, which costs
// less than smaller tiles. Integer sums are exact, so only the FMAs of a block's end have an order.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "linear/int8_multiply.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include "base/check.h"
#include "linear/epilogue-inl.h"
#include "linear/int8_panels-inl.h"
#include "linear/kernel_parts.h"

HWY_BEFORE_NAMESPACE();
namespace quire {
namespace HWY_NAMESPACE {

// 6 x 16 integer sums are 12 of the 16 AVX2 registers. Portable code has none to fill.
constexpr int kTileRows = HWY_TARGET == HWY_SCALAR ? 2 : 6;
constexpr int kFewRows = 24;       // up to so many rows the panel is read as it is packed
constexpr int kChunkRows = 96;     // rows whose codes stay in L2 while the panels pass
constexpr int kSpanBytes = 16384;  // of widened codes, half of L1

// A tile's view of the activations, from one block on.
struct RowsAt {
  const uint8_t* codes;
  size_t code_stride;  // bytes from one row to the next
  const float* scales;
  const float* scaled_sums;
  const int32_t* sums;
  size_t block_stride;  // blocks from one row to the next
};

template <class W>
HWY_INLINE RowsAt At(const Int8Rows& x, int m, int block) {
  const size_t blocks = static_cast<size_t>(x.num_cols / kActivationBlock);
  const size_t at = static_cast<size_t>(m) * blocks + static_cast<size_t>(block);
  return {.codes = W::Codes(x) + at * kActivationBlock * W::kXBytes,
          .code_stride = static_cast<size_t>(x.num_cols) * W::kXBytes,
          .scales = x.scales + at,
          .scaled_sums = x.scaled_sums + at,
          .sums = x.sums + at,
          .block_stride = blocks};
}

// Integer sums of one block, R rows by 16 lanes.
template <class W, int R, bool kWide>
HWY_INLINE void BlockSums(const uint8_t* w, const uint8_t* x, size_t stride, Lanes (&sum)[R]) {
  HWY_UNROLL(8)
  for (int step = 0; step < W::kSteps; ++step) {
    Lanes z[2];
    if (kWide) {
      z[0] = LoadLanes(w + 128 * step);
      z[1] = LoadLanes(w + 128 * step + 64);
    } else {
      W::Unpack(LoadLanes(w + 64 * step), z);
    }
    HWY_UNROLL(2)
    for (int half = 0; half < 2; ++half) {
      HWY_UNROLL(8)
      for (int r = 0; r < R; ++r)
        W::Add(sum[r], z[half],
               BroadcastFour(x + static_cast<size_t>(r) * stride + W::XOffset(step, half)),
               step + half == 0);
    }
  }
}

// The end of a block for one row: what the header of kernels.h promises, in this order.
template <class W>
HWY_INLINE F32x16 AddBlock(F32x16 acc, const Lanes& sum, F32x16 scale, F32x16 min, const RowsAt& x,
                           size_t at) {
  if (W::kHasMin) acc = Fma16(min, Set16(x.scaled_sums[at]), acc);
  return Fma16(W::BlockSum(sum, x.sums[at]), Mul16(scale, Set16(x.scales[at])), acc);
}

// R rows times one packed panel.
template <class W, int R>
HWY_NOINLINE void PackedTile(const uint8_t* panel, int num_blocks, RowsAt x, float* acc_out) {
  F32x16 acc[R];
  for (int r = 0; r < R; ++r) acc[r] = Zero16();
  for (int b = 0; b < num_blocks; ++b, panel += kBlockBytes<W>) {
    Lanes sum[R] = {};
    BlockSums<W, R, false>(panel + W::kHeadBytes, x.codes, x.code_stride, sum);
    const auto* head = reinterpret_cast<const uint16_t*>(panel);
    const F32x16 scale = LoadHalf16(head);
    const F32x16 min = W::kHasMin ? LoadHalf16(head + 16) : scale;
    HWY_UNROLL(8)
    for (int r = 0; r < R; ++r)
      acc[r] = AddBlock<W>(acc[r], sum[r], scale, min, x,
                           static_cast<size_t>(r) * x.block_stride + static_cast<size_t>(b));
    x.codes += kActivationBlock * W::kXBytes;
  }
  for (int r = 0; r < R; ++r) Store16(acc[r], acc_out + 16 * r);
}

// Part of a panel, widened.
template <class W>
struct Span {
  static constexpr int kWideBytes = 128 * W::kSteps;  // of a block
  static constexpr int kMaxBlocks = kSpanBytes / kWideBytes;
  alignas(64) uint8_t codes[kSpanBytes];
  alignas(64) float scales[kMaxBlocks * 16];
  alignas(64) float mins[kMaxBlocks * 16];
};

template <class W>
HWY_NOINLINE void Widen(const uint8_t* panel, int num_blocks, Span<W>& span) {
  for (int b = 0; b < num_blocks; ++b, panel += kBlockBytes<W>) {
    const auto* head = reinterpret_cast<const uint16_t*>(panel);
    Store16(LoadHalf16(head), span.scales + 16 * b);
    if (W::kHasMin) Store16(LoadHalf16(head + 16), span.mins + 16 * b);
    uint8_t* out = span.codes + Span<W>::kWideBytes * b;
    for (int step = 0; step < W::kSteps; ++step) {
      Lanes z[2];
      W::Unpack(LoadLanes(panel + W::kHeadBytes + 64 * step), z);
      StoreLanes(z[0], out + 128 * step);
      StoreLanes(z[1], out + 128 * step + 64);
    }
  }
}

// R rows times a span; acc [R][16] goes on from the span before.
template <class W, int R>
HWY_NOINLINE void SpanTile(const Span<W>& span, int num_blocks, RowsAt x, float* acc) {
  for (int b = 0; b < num_blocks; ++b) {
    Lanes sum[R] = {};
    BlockSums<W, R, true>(span.codes + Span<W>::kWideBytes * b, x.codes, x.code_stride, sum);
    const F32x16 scale = Load16(span.scales + 16 * b);
    const F32x16 min = W::kHasMin ? Load16(span.mins + 16 * b) : scale;
    HWY_UNROLL(8)
    for (int r = 0; r < R; ++r) {
      const size_t at = static_cast<size_t>(r) * x.block_stride + static_cast<size_t>(b);
      Store16(AddBlock<W>(Load16(acc + 16 * r), sum[r], scale, min, x, at), acc + 16 * r);
    }
    x.codes += kActivationBlock * W::kXBytes;
  }
}

// Calls f.template operator()<rows>(), rows in 1..kTileRows.
template <int R = kTileRows, class F>
HWY_INLINE void WithRows(int rows, F&& f) {
  if (rows == R) return f.template operator()<R>();
  if constexpr (R > 1) WithRows<R - 1>(rows, f);
}

// `rows` rows of activations times one panel, to acc [rows][16].
template <class W>
void FewRows(const uint8_t* panel, int num_blocks, const Int8Rows& x, int m, int rows, float* acc) {
  const int num_tiles = (rows + kTileRows - 1) / kTileRows;
  for (int t = 0; t < num_tiles; ++t) {
    const int i0 = rows * t / num_tiles, i1 = rows * (t + 1) / num_tiles;
    WithRows(i1 - i0, [&]<int R>() {
      PackedTile<W, R>(panel, num_blocks, At<W>(x, m + i0, 0), acc + 16 * i0);
    });
  }
}

// The same with a widened panel.
template <class W>
void ManyRows(const uint8_t* panel, int num_blocks, const Int8Rows& x, int m, int rows,
              Span<W>& span, float* acc) {
  const int num_tiles = (rows + kTileRows - 1) / kTileRows;
  const int num_spans = (num_blocks + Span<W>::kMaxBlocks - 1) / Span<W>::kMaxBlocks;
  for (int i = 0; i < rows; ++i) Store16(Zero16(), acc + 16 * i);
  for (int s = 0; s < num_spans; ++s) {
    const int b0 = static_cast<int>(int64_t{num_blocks} * s / num_spans);
    const int b1 = static_cast<int>(int64_t{num_blocks} * (s + 1) / num_spans);
    Widen<W>(panel + b0 * kBlockBytes<W>, b1 - b0, span);
    for (int t = 0; t < num_tiles; ++t) {
      const int i0 = rows * t / num_tiles, i1 = rows * (t + 1) / num_tiles;
      WithRows(i1 - i0, [&]<int R>() {
        SpanTile<W, R>(span, b1 - b0, At<W>(x, m + i0, b0), acc + 16 * i0);
      });
    }
  }
}

template <class W>
void MultiplyAs(const PackedMatrix& matrix, const Int8Rows& x, int m0, int m1, int p0, int p1,
                float* out, int64_t out_stride, const Epilogue& epilogue) {
  alignas(64) float acc[kChunkRows * 16];
  Span<W> span;
  const int num_blocks = matrix.num_cols() / kActivationBlock;
  const int num_chunks = (m1 - m0 + kChunkRows - 1) / kChunkRows;
  for (int c = 0; c < num_chunks; ++c) {
    const int m = m0 + static_cast<int>(int64_t{m1 - m0} * c / num_chunks);
    const int rows = m0 + static_cast<int>(int64_t{m1 - m0} * (c + 1) / num_chunks) - m;
    for (int p = p0; p < p1; ++p) {
      const auto* panel = reinterpret_cast<const uint8_t*>(matrix.panel(p));
      if (rows <= kFewRows)
        FewRows<W>(panel, num_blocks, x, m, rows, acc);
      else
        ManyRows<W>(panel, num_blocks, x, m, rows, span, acc);
      const int first = p * PackedMatrix::kPanelRows;
      const int lanes = HWY_MIN(PackedMatrix::kPanelRows, matrix.num_rows() - first);
      for (int i = 0; i < rows; ++i)
        WriteOutput(Load16(acc + 16 * i), first, lanes, epilogue,
                    out + (m + i) * out_stride + first);
    }
  }
}

void MultiplyInt8(const PackedMatrix& matrix, const Activations& x, int m0, int m1, int p0, int p1,
                  float* out, int64_t out_stride, const Epilogue& epilogue) {
  switch (matrix.type()) {
    case WeightType::kQ8_0:
      return MultiplyAs<Q80>(matrix, x.int8, m0, m1, p0, p1, out, out_stride, epilogue);
    case WeightType::kQ4_0:
      return MultiplyAs<Q40>(matrix, x.int8, m0, m1, p0, p1, out, out_stride, epilogue);
    case WeightType::kQ4_1:
      return MultiplyAs<Q41>(matrix, x.int8, m0, m1, p0, p1, out, out_stride, epilogue);
    default:
      QUIRE_CHECK(false);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace quire
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quire {

MultiplyFunction Int8Multiply(InstructionSet set) {
  switch (set) {
    case InstructionSet::kPortable:
      return N_SCALAR::MultiplyInt8;
    case InstructionSet::kAvx2:
      return N_AVX2::MultiplyInt8;
    case InstructionSet::kAvx512:
      return N_AVX3::MultiplyInt8;
  }
  QUIRE_CHECK(false);
}

}  // namespace quire
#endif  // HWY_ONCE
