// The micro-kernels of attention: a tile of R query rows against one step, for the instruction set
// that is being compiled. A step is the part of one page that lies in one split.
//
//     scores = q K;   softmax;   o = o * keep + weights V
//
// Both products are one function, Multiply: R rows of `a` times panels of 16 columns (tokens of K,
// channels of V), read upwards. Each output sums by channel (K) or token (V) in order, with one FMA
// each, from 0: R, the columns side by side and the instruction set change no bit. V's sum of a
// step is added to o by one more FMA, so a long split loses no small terms.
//
// What a row does not see is selected away or left out, never multiplied: it may be NaN. A step of
// which a row sees nothing leaves the row's state as it was.
//
// Included by kernels.cc once for each target. Not here: std:: functions (base/vector-inl.h).
#if defined(QUIRE_ATTENTION_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIRE_ATTENTION_TILE_INL_H_
#undef QUIRE_ATTENTION_TILE_INL_H_
#else
#define QUIRE_ATTENTION_TILE_INL_H_
#endif

#include "attention/scratch.h"
#include "base/vector-inl.h"

// Unrolled loops keep their accumulators in registers. Portable code has too many for that, and
// sanitizers check every access: both stay rolled, which compiles several times faster.
#undef QUIRE_ROLLED
#undef QUIRE_UNROLL
#undef QUIRE_MULTIPLY_INLINE
#define QUIRE_ROLLED (HWY_TARGET == HWY_SCALAR || HWY_IS_ASAN || HWY_IS_TSAN || HWY_IS_MSAN)
#if QUIRE_ROLLED
#define QUIRE_MULTIPLY_INLINE HWY_NOINLINE
#else
#define QUIRE_MULTIPLY_INLINE HWY_INLINE
#endif
#if defined(__clang__) && QUIRE_ROLLED
#define QUIRE_UNROLL _Pragma("nounroll")
#elif defined(__clang__)
#define QUIRE_UNROLL _Pragma("unroll")
#elif QUIRE_ROLLED
#define QUIRE_UNROLL _Pragma("GCC unroll 1")
#else
#define QUIRE_UNROLL _Pragma("GCC unroll 16")
#endif

HWY_BEFORE_NAMESPACE();
namespace quire {
namespace HWY_NAMESPACE {

// Finite, so that m - m is 0 in a state that has seen nothing.
inline constexpr float kLowest = -3.402823466e+38f;

inline constexpr bool kPrefetches = !QUIRE_ROLLED;

// Columns, in vectors, that one pass over the panels' rows computes. An FMA takes 4 clocks and two
// start in each (one with AVX-512), so 8 (4) sums would just do; 12 (16 and more) leave room for
// loads that come late (measured, share of the FMA peak with AVX2: 4 rows x 2 vectors 0.90, 4 x 3
// 0.99, 6 x 2 0.99).
inline constexpr size_t kNarrowColumns = kVecs;
constexpr size_t WideColumns(int rows) {
  if (kVecs == 1) return 4;
  if (kVecs > 2) return kNarrowColumns;
  return rows == 1 ? 8 : rows < 4 ? 4 : rows == 4 ? 3 : 2;
}

// Two prefetch cursors beside the reader, to L2, one line a step: the next chunk and the one after
// it, which picks up what the first dropped (measured; L1 prefetches block its miss buffers).
struct Ahead {
  const char* next;
  const char* next2;
  size_t line_bytes;  // 64, or 0 when another tile's pass has done it: the cursors stand still
};

HWY_INLINE VF LoadLanes(const float* p) { return hn::LoadU(DF(), p); }
HWY_INLINE VF LoadLanes(const uint16_t* p) {
#if HWY_TARGET == HWY_SCALAR
  return hn::Set(DF(), HalfToFloat(*p));
#else
  const hn::Rebind<hwy::float16_t, DF> dh;
  return hn::PromoteTo(DF(), hn::LoadU(dh, reinterpret_cast<const hwy::float16_t*>(p)));
#endif
}

// acc[c] += a * x[c] with one rounding, acc in its register: left to themselves, compilers write
// sums to other registers, run out of them and spill (measured: up to 40 % of a tile's time). With
// AVX-512 the multiply itself broadcasts `a`: a broadcast apart costs half a multiply.
template <size_t N>
HWY_INLINE void Accumulate(const float& a, const VF (&x)[N], VF* acc) {
#if HWY_TARGET == HWY_AVX3
  QUIRE_UNROLL for (size_t i = 0; i < N; ++i) asm(
      "vfmadd231ps %2%{1to16%}, %1, %0" : "+v"(acc[i].raw) : "v"(x[i].raw), "m"(a));
#elif HWY_TARGET == HWY_AVX2
  const VF w = hn::Set(DF(), a);
  QUIRE_UNROLL for (size_t i = 0; i < N; ++i) asm(
      "vfmadd231ps %1, %2, %0" : "+x"(acc[i].raw) : "x"(w.raw), "x"(x[i].raw));
#else
  const VF w = hn::Set(DF(), a);
  for (size_t i = 0; i < N; ++i) acc[i] = Fma(w, x[i], acc[i]);
#endif
}

// out[r] = sum over i < n of a[r][i] * (row i of the panels), for R rows. A panel's row is 16
// elements; panels lie panel_step elements apart. With keep: out[r] = out[r] * keep[r] + that sum.
struct Product {
  const float* a;
  size_t a_stride;
  const void* panels;
  size_t panel_step;
  size_t n;
  size_t num_columns;  // in vectors
  float* out;          // up to a whole panel is written
  size_t out_stride;
  const float* keep;
  bool is_first;  // with keep: what is in `out` counts as 0
};

// The sums of V vectors of columns, in registers.
template <int R, size_t V>
struct Sums {
  VF v[R][V];
};

template <int R, size_t V>
HWY_INLINE void ClearSums(Sums<R, V>& sums) {
  QUIRE_UNROLL for (int r = 0; r < R; ++r) QUIRE_UNROLL for (size_t c = 0; c < V; ++c)
      sums.v[r][c] = hn::Zero(DF());
}

// Adds one row of the panels; column c stands at row[at[c]].
template <int R, size_t V, class T>
HWY_INLINE void AddRow(const float* a, size_t a_stride, const T* row, const size_t (&at)[V],
                       Sums<R, V>& sums) {
  // As many vectors of the row as there are registers for.
  constexpr size_t kAtOnce = kVecs != 2 || (R + 1) * V < 16 ? V : 2;
  QUIRE_UNROLL for (size_t c = 0; c < V; c += kAtOnce) {
    VF x[kAtOnce];
    QUIRE_UNROLL for (size_t i = 0; i < kAtOnce; ++i) x[i] = LoadLanes(row + at[c + i]);
    QUIRE_UNROLL for (int r = 0; r < R; ++r)
        Accumulate(a[static_cast<size_t>(r) * a_stride], x, &sums.v[r][c]);
  }
}

// out = out * keep + sums of row r, columns from `to` on.
template <int R, size_t V>
HWY_INLINE void AddSums(const Product& p, int r, const Sums<R, V>& sums, float* to) {
  const VF keep = hn::Set(DF(), p.keep[r]);
  QUIRE_UNROLL for (size_t c = 0; c < V; ++c) {
    const VF old = p.is_first ? hn::Zero(DF()) : hn::LoadU(DF(), to + c * kVecLanes);
    hn::StoreU(Fma(old, keep, sums.v[r][c]), DF(), to + c * kVecLanes);
  }
}

template <int R, size_t V>
HWY_INLINE void StoreSums(const Product& p, size_t column, const Sums<R, V>& sums) {
  float* out = p.out + column * kVecLanes;
  QUIRE_UNROLL for (int r = 0; r < R; ++r) {
    float* to = out + static_cast<size_t>(r) * p.out_stride;
    if (p.keep == nullptr) {
      QUIRE_UNROLL for (size_t c = 0; c < V; ++c)
          hn::StoreU(sums.v[r][c], DF(), to + c * kVecLanes);
    } else {
      AddSums(p, r, sums, to);
    }
  }
}

// Where V vectors stand from column `half` of a panel on, seen from there.
template <size_t V>
HWY_INLINE void PlaceColumns(size_t half, size_t panel_step, size_t (&at)[V]) {
  QUIRE_UNROLL for (size_t c = 0; c < V; ++c) at[c] =
      (half + c) / kVecs * panel_step + (half + c) % kVecs * kVecLanes - half * kVecLanes;
}
template <class T>
HWY_INLINE const T* FirstRow(const Product& p, size_t column) {
  return static_cast<const T*>(p.panels) + column / kVecs * p.panel_step +
         column % kVecs * kVecLanes;
}

template <int R, size_t V, class T>
QUIRE_MULTIPLY_INLINE void MultiplyColumns(const Product& p, size_t column, Ahead& ahead) {
  // An iteration reads whole cache lines.
  constexpr size_t kRowBytes = V * kVecLanes * sizeof(T);
  constexpr size_t kRows = kRowBytes % 64 == 0 ? 1 : kRowBytes % 32 == 0 ? 2 : 4;
  constexpr size_t kLines = kRows * kRowBytes / 64;
  size_t at[V];
  // Passes over whole panels only start at a panel, always.
  PlaceColumns(WideColumns(R) % kVecs == 0 ? 0 : column % kVecs, p.panel_step, at);
  const T* row = FirstRow<T>(p, column);
  const float* a = p.a;
  Sums<R, V> sums;
  ClearSums(sums);
  size_t i = 0;
  for (; i + kRows <= p.n; i += kRows) {
    if constexpr (kPrefetches) {
      QUIRE_UNROLL for (size_t line = 0; line < kLines; ++line) {
        __builtin_prefetch(ahead.next2 + 64 * line, 0, 2);
        __builtin_prefetch(ahead.next + 64 * line, 0, 2);
      }
      ahead.next2 += kLines * ahead.line_bytes;
      ahead.next += kLines * ahead.line_bytes;
    }
    QUIRE_UNROLL for (size_t j = 0; j < kRows; ++j)
        AddRow(a + j, p.a_stride, row + 16 * j, at, sums);
    a += kRows;
    row += 16 * kRows;
  }
  if constexpr (kRows > 1)
    for (; i < p.n; ++i, ++a, row += 16) AddRow(a, p.a_stride, row, at, sums);
  StoreSums(p, column, sums);
}

template <int R, class T>
HWY_NOINLINE void Multiply(const Product& p, Ahead& cursors) {
  constexpr size_t kWide = WideColumns(R);
  Ahead ahead = cursors;
  size_t column = 0;
  if constexpr (kWide > kNarrowColumns) {
    for (;;) {
      const size_t left = p.num_columns - column;
      // Two times two rather than three and one.
      if (left < kWide || (kWide == 3 && left == 4)) break;
      MultiplyColumns<R, kWide, T>(p, column, ahead);
      column += kWide;
    }
  }
  for (; column < p.num_columns; column += kNarrowColumns)
    MultiplyColumns<R, kNarrowColumns, T>(p, column, ahead);
  cursors = ahead;
}

// What the rows of a tile see of a step: row r tokens [first[r], last[r]), both 0 for none; all of
// them together [begin, end).
struct StepRows {
  uint32_t first[kTileRows];
  uint32_t last[kTileRows];
  uint32_t begin;
  uint32_t end;
  bool is_ragged;  // the rows see different tokens
};

// Adds rows [from, to) of a panel to the sums of those rows that see them.
template <int R, class T>
HWY_INLINE void AddSeen(const Product& p, const StepRows& rows, const T* panel, size_t from,
                        size_t to, Sums<R, kNarrowColumns>& sums) {
  const DF d;
  const DI di;
  for (size_t i = from; i < to; ++i) {
    const VI token = hn::Set(di, static_cast<int32_t>(i));
    VF x[kNarrowColumns];
    QUIRE_UNROLL for (size_t c = 0; c < kNarrowColumns; ++c) x[c] =
        LoadLanes(panel + 16 * i + c * kVecLanes);
    QUIRE_UNROLL for (int r = 0; r < R; ++r) {
      const VI before = hn::Set(di, static_cast<int32_t>(rows.first[r]) - 1);
      const VI end = hn::Set(di, static_cast<int32_t>(rows.last[r]));
      const auto seen = hn::RebindMask(d, hn::And(hn::Gt(token, before), hn::Gt(end, token)));
      const VF w = hn::Set(d, p.a[static_cast<size_t>(r) * p.a_stride + i]);
      QUIRE_UNROLL for (size_t c = 0; c < kNarrowColumns; ++c) sums.v[r][c] =
          hn::IfThenElse(seen, Fma(w, x[c], sums.v[r][c]), sums.v[r][c]);
    }
  }
}

// As Multiply with keep, when row r sees tokens [rows.first[r], rows.last[r]) only, counted from
// where p.panels and p.a start.
template <int R, class T>
HWY_NOINLINE void MultiplyRagged(const Product& p, const StepRows& rows) {
  size_t begin = 0, end = rows.last[0];  // what all rows see
  for (int r = 0; r < R; ++r) {
    if (rows.first[r] > begin) begin = rows.first[r];
    if (rows.last[r] < end) end = rows.last[r];
  }
  if (begin >= end) begin = end = rows.begin;
  size_t at[kNarrowColumns];
  PlaceColumns(0, p.panel_step, at);
  for (size_t column = 0; column < p.num_columns; column += kNarrowColumns) {
    const T* panel = FirstRow<T>(p, column);
    Sums<R, kNarrowColumns> sums;
    ClearSums(sums);
    AddSeen(p, rows, panel, rows.begin, begin, sums);
    const float* a = p.a + begin;
    const T* row = panel + 16 * begin;
    for (size_t i = begin; i < end; ++i, ++a, row += 16) AddRow(a, p.a_stride, row, at, sums);
    AddSeen(p, rows, panel, end, rows.end, sums);
    QUIRE_UNROLL for (int r = 0; r < R; ++r) {
      // A row that sees nothing keeps its state: o * 1 + 0 would turn -0 into +0.
      if (rows.last[r] == 0 && !p.is_first) continue;
      AddSums(p, r, sums, p.out + static_cast<size_t>(r) * p.out_stride + column * kVecLanes);
    }
  }
}

// The lanes of 16 tokens from `token` that a row sees keep x, the others take `other`.
HWY_INLINE F32x16 Select16(uint32_t token, uint32_t first, uint32_t last, F32x16 x, float other) {
  const DF d;
  for (size_t i = 0; i < kVecs; ++i) {
    const VF at = hn::Iota(d, static_cast<float>(token + i * kVecLanes));
    const auto seen = hn::And(hn::Ge(at, hn::Set(d, static_cast<float>(first))),
                              hn::Lt(at, hn::Set(d, static_cast<float>(last))));
    x.v[i] = hn::IfThenElse(seen, x.v[i], hn::Set(d, other));
  }
  return x;
}

// What softmax works on: one tile's rows in one step.
struct SoftmaxRows {
  int num_rows;
  float* scores;  // [num_rows, kScoreStride], become weights
  float* max;     // [num_rows]
  float* sums;    // [num_rows, 16]
  float* keep;    // [16], becomes the factor for what row r has summed so far
};

// Blocks of 16 tokens whose exponentials are computed side by side: two vectors hide each other's
// latency, and leave registers for the sum (measured: four are no faster).
inline constexpr uint32_t kExpBlocks = kVecs == 1 ? 2 : 1;

// s = 2^(s - max) in kBlocks blocks; returns sum + those.
template <uint32_t kBlocks>
HWY_INLINE F32x16 WeighBlocks(float* s, VF max, F32x16 sum) {
  VF x[kBlocks * kVecs];
  for (size_t i = 0; i < kBlocks * kVecs; ++i)
    x[i] = hn::Sub(max, hn::LoadU(DF(), s + i * kVecLanes));
  Exp2Minus(x);
  for (size_t i = 0; i < kBlocks * kVecs; ++i) {
    sum.v[i % kVecs] = hn::Add(sum.v[i % kVecs], x[i]);
    hn::StoreU(x[i], DF(), s + i * kVecLanes);
  }
  return sum;
}

// Scores of tokens [begin, end), from a multiple of 16 on, to weights relative to the maximum so
// far; keep; the state's max and sums. Lanes up to a multiple of 16 after the end are read as well.
// Ragged: rows see what `rows` says, and the others' weights become 0.
template <bool kRagged>
HWY_NOINLINE void Softmax(const SoftmaxRows& t, const StepRows& rows) {
  const uint32_t begin = rows.begin / 16 * 16, end = (rows.end + 15) / 16 * 16;
  const auto is_cut = [&](int r, uint32_t token) HWY_ATTR {
    return kRagged && (token < rows.first[r] || token + 16 > rows.last[r]);
  };
  alignas(64) float step[16] = {};
  for (int r = 0; r < t.num_rows; ++r) {
    const float* s = t.scores + static_cast<size_t>(r) * kScoreStride;
    F32x16 top = Set16(t.max[r]);
    for (uint32_t token = begin; token < end; token += 16) {
      F32x16 x = Load16(s + token);
      if (is_cut(r, token)) x = Select16(token, rows.first[r], rows.last[r], x, kLowest);
      top = Max16(top, x);
    }
    const float max = MaxLanes16(top);
    step[r] = t.max[r] - max;
    t.max[r] = max;
  }
  Store16(Exp2x16(Load16(step)), t.keep);
  for (int r = 0; r < t.num_rows; ++r) {
    float* s = t.scores + static_cast<size_t>(r) * kScoreStride;
    const VF max = hn::Set(DF(), t.max[r]);
    F32x16 sum = Zero16();
    uint32_t token = begin;
    if constexpr (kRagged) {
      for (; token < end; token += 16) {
        if (!is_cut(r, token)) {
          sum = WeighBlocks<1>(s + token, max, sum);
          continue;
        }
        WeighBlocks<1>(s + token, max, sum);
        const F32x16 p = Select16(token, rows.first[r], rows.last[r], Load16(s + token), 0.0f);
        Store16(p, s + token);
        sum = Add16(sum, p);
      }
    } else {
      for (; token + 16 * kExpBlocks <= end; token += 16 * kExpBlocks)
        sum = WeighBlocks<kExpBlocks>(s + token, max, sum);
      if (kExpBlocks > 1 && token < end) sum = WeighBlocks<1>(s + token, max, sum);
    }
    float* sums = t.sums + r * 16;
    Store16(Fma16(Load16(sums), Set16(t.keep[r]), sum), sums);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace quire
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
