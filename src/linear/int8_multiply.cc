// Products of quantised weights with int8 activations, on every instruction set.
//
// Two ways through a panel, with the same operations in the same order for each output:
//   few rows   a tile of rows unpacks the panel as it goes: best while weights come from memory;
//   many rows  a span of the panel is unpacked once into L1 and all row tiles run over it; types of
//              one kind (block_sums-inl.h) share that code.
// A tile's integer sums fill the registers; its f32 sums wait in memory between blocks, which costs
// less than smaller tiles. Integer sums are exact, so only the FMAs of a block's end have an order.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "linear/int8_multiply.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include "base/check.h"
#include "linear/block_sums-inl.h"
#include "linear/epilogue-inl.h"
#include "linear/kernel_parts.h"

HWY_BEFORE_NAMESPACE();
namespace quire {
namespace HWY_NAMESPACE {

// Rows of a tile: 6 x 16 integer sums are 12 of the 16 AVX2 registers, 12 x 16 are 12 of 32 of
// AVX-512. Portable code has none to fill.
#if defined(QUIRE_SANITIZED)
constexpr int kTileRows = 2;  // checked code of large tiles would take minutes to compile
#else
constexpr int kTileRows = HWY_TARGET == HWY_AVX3 ? 12 : HWY_TARGET == HWY_AVX2 ? 6 : 2;
#endif
constexpr int kFewRows = kTileRows < 4 ? kTileRows : 4;  // up to here the panel is read as it is
constexpr int kChunkRows = 96;     // rows whose codes stay in L2 while the panels pass
constexpr int kSpanBytes = 16384;  // of unpacked codes, half of L1

// A tile's view of the activations: the block where it stands, row by row.
template <class K>
struct RowsAt {
  const uint8_t* codes;
  const float* scales;
  const float* scaled_sums;
  const int32_t* sums;
  const int32_t* half_sums;
  size_t num_rows;  // from one block to the next

  HWY_INLINE void Next() {
    codes += num_rows * K::kXStride;
    scales += num_rows;
    scaled_sums += num_rows;
    sums += num_rows;
    half_sums += num_rows;
  }
};

template <class K>
HWY_INLINE RowsAt<K> At(const Int8Rows& x, int m, int block) {
  const size_t at = x.At(m, block);
  return {.codes = K::Codes(x) + at * K::kXStride,
          .scales = x.scales + at,
          .scaled_sums = x.scaled_sums + at,
          .sums = x.sums + at,
          .half_sums = x.half_sums + at,
          .num_rows = static_cast<size_t>(x.num_rows)};
}

// The end of a block for one row: what the header of kernels.h promises, in this order.
// offset_bits: codes are 2^offset_bits too large, where the kind has an offset.
template <class K>
HWY_INLINE F32x16 AddBlock(F32x16 acc, Lanes sum, const typename K::Head& head, int offset_bits,
                           const RowsAt<K>& x, size_t r) {
  const F32x16 x_scale = Set16(x.scales[r]);
  if constexpr (K::kOffset) {
    Lanes ones = BroadcastLane((K::kHalves ? x.half_sums : x.sums) + r);
    if constexpr (K::kHalves) ones = WordDots(ones, head.scales);
    sum = SubLanes(sum, ShiftLeftLanes(ones, offset_bits));
  }
  if constexpr (K::kMin && K::kHalves) {
    const Lanes mins = WordDots(BroadcastLane(x.half_sums + r), head.mins);
    acc = Fma16(LanesToFloat(mins), Mul16(head.min, x_scale), acc);
  } else if constexpr (K::kMin) {
    acc = Fma16(head.min, Set16(x.scaled_sums[r]), acc);
  }
  return Fma16(LanesToFloat(sum), Mul16(head.scale, x_scale), acc);
}

constexpr int OffsetBits(int offset) {
  int bits = 0;
  while (1 << bits < offset) ++bits;
  return bits;
}

// R rows times one packed panel.
template <class P, int R>
HWY_NOINLINE void PackedTile(const uint8_t* panel, int num_blocks, RowsAt<KindOf<P>> x,
                             float* acc_out) {
  using K = KindOf<P>;
  constexpr PanelFormat kFormat = P::kFormat;
  F32x16 acc[R];
  for (int r = 0; r < R; ++r) acc[r] = Zero16();
  for (int first = 0; first < num_blocks; first += kFormat.blocks) {
    const uint8_t* group = panel;
    const uint8_t* block = group + kFormat.head_bytes();
    for (int b = 0; b < kFormat.blocks; ++b, block += kFormat.block_stride()) {
      const typename P::Head head = P::LoadHead(group, block);
      Lanes sum[R];
      BlockSums<K, R>(PackedCodes<P>{block + kFormat.block_head_bytes()}, head, x.codes, sum);
      HWY_UNROLL(8)
      for (int r = 0; r < R; ++r)
        acc[r] =
            AddBlock<K>(acc[r], sum[r], head, OffsetBits(P::kOffset), x, static_cast<size_t>(r));
      x.Next();
    }
    panel += kFormat.group_stride();
  }
  for (int r = 0; r < R; ++r) Store16(acc[r], acc_out + 16 * r);
}

// Part of a panel, unpacked.
template <class K>
struct Span {
  static constexpr int kMaxBlocks = kSpanBytes / kUnpackedBytes<K> / (K::kHalves ? 2 : 1);
  alignas(64) uint8_t codes[kMaxBlocks * kUnpackedBytes<K>];
  typename K::Head heads[kMaxBlocks];
};

// Blocks [first, end) of a panel.
template <class P>
HWY_NOINLINE void FillSpan(const uint8_t* panel, int first, int end, Span<KindOf<P>>& span) {
  constexpr PanelFormat kFormat = P::kFormat;
  for (int b = first; b < end; ++b) {
    const uint8_t* block = panel + kFormat.BlockAt(b);
    span.heads[b - first] = P::LoadHead(panel + kFormat.GroupAt(b), block);
    Unpack<P>(block + kFormat.block_head_bytes(),
              span.codes + (b - first) * kUnpackedBytes<KindOf<P>>);
  }
}

// The part of the weights that comes after a span: fetched into L2 while the span is multiplied,
// `stride` bytes a block. Without it the reading waits for the arithmetic and the arithmetic for
// the reading: 8 rows took 1.5 times as long.
struct Ahead {
  const uint8_t* bytes = nullptr;
  size_t stride = 0;

  HWY_INLINE void Fetch() {
    for (size_t i = 0; i < stride; i += 64) __builtin_prefetch(bytes + i, 0, 2);
    bytes += stride;
  }
};

// R rows times a span; acc [R][16] goes on from the span before.
template <class K, int R>
HWY_NOINLINE void SpanTile(const Span<K>& span, int num_blocks, int offset_bits, RowsAt<K> x,
                           Ahead ahead, float* acc) {
  constexpr bool kInRegisters = HWY_TARGET == HWY_AVX3;
  F32x16 kept[R];
  if (kInRegisters) {
    HWY_UNROLL(16)
    for (int r = 0; r < R; ++r) kept[r] = Load16(acc + 16 * r);
  }
  for (int b = 0; b < num_blocks; ++b) {
    Lanes sum[R];
    ahead.Fetch();
    const typename K::Head& head = span.heads[b];
    BlockSums<K, R>(UnpackedCodes{span.codes + kUnpackedBytes<K> * b}, head, x.codes, sum);
    HWY_UNROLL(16)
    for (int r = 0; r < R; ++r) {
      const auto at = static_cast<size_t>(r);
      if (kInRegisters) {
        kept[r] = AddBlock<K>(kept[r], sum[r], head, offset_bits, x, at);
      } else {
        Store16(AddBlock<K>(Load16(acc + 16 * r), sum[r], head, offset_bits, x, at), acc + 16 * r);
      }
    }
    x.Next();
  }
  if (kInRegisters) {
    HWY_UNROLL(16)
    for (int r = 0; r < R; ++r) Store16(kept[r], acc + 16 * r);
  }
}

// Calls f.template operator()<rows>(), rows in 1..R.
template <int R, class F>
HWY_INLINE void WithRows(int rows, F&& f) {
  if (rows == R) return f.template operator()<R>();
  if constexpr (R > 1) WithRows<R - 1>(rows, f);
}

template <class K>
HWY_NOINLINE void SpanTiles(const Span<K>& span, int num_blocks, int offset_bits, const Int8Rows& x,
                            int m, int block, int rows, Ahead ahead, float* acc) {
  const int num_tiles = (rows + kTileRows - 1) / kTileRows;
  for (int t = 0; t < num_tiles; ++t) {
    const int i0 = rows * t / num_tiles, i1 = rows * (t + 1) / num_tiles;
    WithRows<kTileRows>(i1 - i0, [&]<int R>() {
      SpanTile<K, R>(span, num_blocks, offset_bits, At<K>(x, m + i0, block), ahead, acc + 16 * i0);
    });
    ahead = {};
  }
}

// `rows` rows of activations times one panel, by spans, to acc [rows][16].
template <class P>
void ManyRows(const uint8_t* panel, int num_blocks, const Int8Rows& x, int m, int rows,
              Span<KindOf<P>>& span, float* acc) {
  constexpr int kMaxBlocks = Span<KindOf<P>>::kMaxBlocks;
  const int num_spans = (num_blocks + kMaxBlocks - 1) / kMaxBlocks;
  for (int i = 0; i < rows; ++i) Store16(Zero16(), acc + 16 * i);
  for (int s = 0; s < num_spans; ++s) {
    const int b0 = static_cast<int>(int64_t{num_blocks} * s / num_spans);
    const int b1 = static_cast<int>(int64_t{num_blocks} * (s + 1) / num_spans);
    FillSpan<P>(panel, b0, b1, span);
    const auto stride = static_cast<size_t>(P::kFormat.group_stride() / P::kFormat.blocks);
    SpanTiles<KindOf<P>>(span, b1 - b0, OffsetBits(P::kOffset), x, m, b0, rows,
                         Ahead{panel + static_cast<size_t>(b1) * stride, stride}, acc);
  }
}

template <class P>
void MultiplyAs(const PackedMatrix& matrix, const Int8Rows& x, int m0, int m1, int p0, int p1,
                float* out, int64_t out_stride, const Epilogue& epilogue) {
  alignas(64) float acc[kChunkRows * 16];
  Span<KindOf<P>> span;
  const int num_blocks = matrix.num_cols() / kActivationBlock;
  const int num_chunks = (m1 - m0 + kChunkRows - 1) / kChunkRows;
  for (int c = 0; c < num_chunks; ++c) {
    const int m = m0 + static_cast<int>(int64_t{m1 - m0} * c / num_chunks);
    const int rows = m0 + static_cast<int>(int64_t{m1 - m0} * (c + 1) / num_chunks) - m;
    for (int p = p0; p < p1; ++p) {
      const auto* panel = reinterpret_cast<const uint8_t*>(matrix.panel(p));
      if (rows <= kFewRows)
        WithRows<kFewRows>(rows, [&]<int R>() {
          PackedTile<P, R>(panel, num_blocks, At<KindOf<P>>(x, m, 0), acc);
        });
      else
        ManyRows<P>(panel, num_blocks, x, m, rows, span, acc);
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
  WithPanelType(matrix.type(), [&]<class P>() {
    MultiplyAs<P>(matrix, x.int8, m0, m1, p0, p1, out, out_stride, epilogue);
  });
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
