// The micro-kernels of attention: a tile of R query rows against one step, for the instruction set
// that is being compiled. A step is the part of one page that lies in one split.
//
//     scores = q K;   softmax;   o = o * keep + weights V
//
// Both products are one loop: R rows of `a` times a panel of 16 columns (tokens of K, channels of
// V), read strictly upwards. Each output sums by channel (K) or token (V) in order, with one FMA
// each, from 0: R, the panels side by side and the instruction set change no bit. V's sum of a step
// is added to o by one more FMA, so a long split loses no small terms.
//
// What a row does not see is selected away, never multiplied: it may be NaN. A step of which a row
// sees nothing leaves the row's state as it was.
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

// Panels of 16 columns side by side: enough accumulators to cover the latency of an FMA (4 clocks,
// 2 a clock), few enough to stay in registers.
constexpr int NumPanels(int rows) {
  if (kVecs > 2) return 1;
  if (kVecs == 1) return rows >= 4 ? 2 : 4;
  return rows >= 4 ? 1 : rows >= 2 ? 2 : 4;
}

inline constexpr bool kPrefetches = !QUIRE_ROLLED;

// Two prefetch cursors beside the reader, to L2, one line a step: the next chunk and the one after
// it, which picks up what the first dropped (measured; L1 prefetches block its miss buffers).
struct Ahead {
  const char* next;
  const char* next2;
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

// acc += w * x with one rounding, acc in its register: left to themselves, compilers write sums to
// other registers, run out of the sixteen and spill (measured: up to 40 % of a tile's time).
HWY_INLINE void Accumulate(VF w, VF x, VF& acc) {
#if HWY_TARGET == HWY_AVX2
  asm("vfmadd231ps %1, %2, %0" : "+x"(acc.raw) : "x"(w.raw), "x"(x.raw));
#else
  acc = Fma(w, x, acc);
#endif
}

// acc[r][c] += a[r * kRowStep] * the c-th vector of one row of the panels. Two vectors at a time.
template <int R, int kPanels, size_t kRowStep, class T>
HWY_INLINE void MultiplyRow(const float* a, const T* panel, size_t panel_step,
                            VF (&acc)[R][kPanels * kVecs]) {
  constexpr size_t kColumns = kPanels * kVecs, kPair = kColumns == 1 ? 1 : 2;
  QUIRE_UNROLL for (size_t c = 0; c < kColumns; c += kPair) {
    VF x[kPair];
    QUIRE_UNROLL for (size_t i = 0; i < kPair; ++i) x[i] =
        LoadLanes(panel + ((c + i) / kVecs) * panel_step + (c + i) % kVecs * kVecLanes);
    QUIRE_UNROLL for (int r = 0; r < R; ++r) {
      const VF w = hn::Set(DF(), a[static_cast<size_t>(r) * kRowStep]);
      QUIRE_UNROLL for (size_t i = 0; i < kPair; ++i) Accumulate(w, x[i], acc[r][c + i]);
    }
#if HWY_TARGET == HWY_AVX2
    // There is no register for all of `a` as well: have it loaded again for the next pair.
    if constexpr (R * kColumns + R + kPair > 15) asm("" : "+r"(a));
#endif
  }
}

// acc[r] += sum over i < n of a[i * kStep + r * kRowStep] * (row i of the panels). A panel's row is
// 16 elements; panels lie panel_step elements apart.
template <int R, int kPanels, size_t kStep, size_t kRowStep, bool kAhead, class T>
QUIRE_MULTIPLY_INLINE void Multiply(const float* HWY_RESTRICT a, const T* HWY_RESTRICT panel,
                                    size_t panel_step, size_t n, VF (&acc)[R][kPanels * kVecs],
                                    Ahead& ahead) {
  // An iteration reads whole cache lines; four rows for one panel leave fewer iterations to the
  // branch predictor, two keep the larger tiles' accumulators in registers.
  constexpr size_t kRows = kPanels * sizeof(T) >= 4 ? 1 : kAhead ? 4 : 2;
  constexpr size_t kLines = kRows * kPanels * sizeof(T) / 4;
  size_t i = 0;
  for (; i + kRows <= n; i += kRows) {
    if constexpr (kAhead) {
      QUIRE_UNROLL for (size_t line = 0; line < kLines; ++line) {
        __builtin_prefetch(ahead.next2 + 64 * line, 0, 2);
        __builtin_prefetch(ahead.next + 64 * line, 0, 2);
      }
      ahead.next2 += 64 * kLines;
      ahead.next += 64 * kLines;
    }
    QUIRE_UNROLL for (size_t row = 0; row < kRows; ++row)
        MultiplyRow<R, kPanels, kRowStep>(a + row * kStep, panel + row * 16, panel_step, acc);
    a += kRows * kStep;
    panel += kRows * 16;
  }
  if constexpr (kRows > 1)
    for (; i < n; ++i, a += kStep, panel += 16)
      MultiplyRow<R, kPanels, kRowStep>(a, panel, panel_step, acc);
}

template <int R, int kColumns>
HWY_INLINE void Clear(VF (&acc)[R][kColumns]) {
  QUIRE_UNROLL for (int r = 0; r < R; ++r) QUIRE_UNROLL for (int c = 0; c < kColumns; ++c)
      acc[r][c] = hn::Zero(DF());
}

// One tile in one step. Row r sees tokens [first[r], last[r]) of the step; both 0: none.
struct Tile {
  const float* q;         // [head_dim_k][R]
  float* scores;          // [R, kScoreStride]
  float* o;               // [R, o_stride]
  float* max;             // [R]
  float* sums;            // [R, 16]
  const void* k;          // K codes at the step's first token
  const void* v;          // V codes at the step's first token, of the first 16 channels
  const float* narrow_v;  // [tokens, 16]: V's last block, if it is narrower than 16; else null
  size_t head_dim_k;
  size_t num_v_panels;  // full blocks of 16 channels
  size_t v_panel_step;  // elements from one to the next
  size_t o_stride;
  uint32_t first[kTileRows];
  uint32_t last[kTileRows];
  float keep[16];  // factor for what row r has summed so far
};

// Scores of blocks of 16 tokens [block, end).
template <int R, int kPanels, bool kAhead, class T>
HWY_INLINE size_t ScoreBlocks(const Tile& t, size_t block, size_t end, Ahead& ahead) {
  for (; block + kPanels <= end; block += kPanels) {
    VF acc[R][kPanels * kVecs];
    Clear(acc);
    Multiply<R, kPanels, R, 1, kAhead>(t.q, static_cast<const T*>(t.k) + block * 16 * t.head_dim_k,
                                       16 * t.head_dim_k, t.head_dim_k, acc, ahead);
    QUIRE_UNROLL for (int r = 0; r < R; ++r) QUIRE_UNROLL for (size_t c = 0; c < kPanels * kVecs;
                                                               ++c)
        hn::StoreU(acc[r][c], DF(),
                   t.scores + static_cast<size_t>(r) * kScoreStride + block * 16 + c * kVecLanes);
  }
  return block;
}

template <int R, bool kAhead, class T>
HWY_NOINLINE void Scores(Tile& t, Ahead& cursors) {
  uint32_t first = t.first[0], last = t.last[0];
  for (int r = 1; r < R; ++r) {
    if (t.last[r] == 0) continue;
    if (last == 0 || t.first[r] < first) first = t.first[r];
    if (t.last[r] > last) last = t.last[r];
  }
  Ahead ahead = cursors;
  const size_t end = (last + 15) / 16;
  const size_t block = ScoreBlocks<R, NumPanels(R), kAhead, T>(t, first / 16, end, ahead);
  if constexpr (NumPanels(R) > 1) ScoreBlocks<R, 1, kAhead, T>(t, block, end, ahead);
  cursors = ahead;
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

// Scores to weights relative to the maximum so far; t.keep; the state's max and sums.
template <int R>
HWY_NOINLINE void Softmax(Tile& t) {
  alignas(64) float step[16] = {};
  for (int r = 0; r < R; ++r) {
    if (t.last[r] == 0) continue;
    const float* s = t.scores + static_cast<size_t>(r) * kScoreStride;
    F32x16 top = Set16(t.max[r]);
    for (uint32_t token = t.first[r] / 16 * 16; token < t.last[r]; token += 16) {
      F32x16 x = Load16(s + token);
      if (token < t.first[r] || token + 16 > t.last[r])
        x = Select16(token, t.first[r], t.last[r], x, kLowest);
      top = Max16(top, x);
    }
    const float max = MaxLanes16(top);
    step[r] = t.max[r] - max;
    t.max[r] = max;
  }
  Store16(Exp2x16(Load16(step)), t.keep);
  for (int r = 0; r < R; ++r) {
    if (t.last[r] == 0) continue;
    float* s = t.scores + static_cast<size_t>(r) * kScoreStride;
    const F32x16 max = Set16(t.max[r]);
    F32x16 sum = Zero16();
    for (uint32_t token = t.first[r] / 16 * 16; token < t.last[r]; token += 16) {
      F32x16 p = Exp2x16(Sub16(Load16(s + token), max));
      if (token < t.first[r] || token + 16 > t.last[r])
        p = Select16(token, t.first[r], t.last[r], p, 0.0f);
      sum = Add16(sum, p);
      Store16(p, s + token);
    }
    float* sums = t.sums + r * 16;
    Store16(Fma16(Load16(sums), Set16(t.keep[r]), sum), sums);
  }
}

// o = o * keep + weights V for kPanels blocks of 16 channels, when all rows see tokens
// [first, last).
template <int R, int kPanels, bool kAhead, class T>
HWY_INLINE void AddValues(const Tile& t, uint32_t first, uint32_t last, const T* panel,
                          size_t panel_step, float* o, Ahead& ahead) {
  VF acc[R][kPanels * kVecs];
  Clear(acc);
  Multiply<R, kPanels, 1, kScoreStride, kAhead>(t.scores + first, panel + first * size_t{16},
                                                panel_step, last - first, acc, ahead);
  QUIRE_UNROLL for (int r = 0; r < R; ++r) {
    const VF keep = hn::Set(DF(), t.keep[r]);
    QUIRE_UNROLL for (size_t c = 0; c < kPanels * kVecs; ++c) {
      float* to = o + static_cast<size_t>(r) * t.o_stride + c * kVecLanes;
      hn::StoreU(Fma(hn::LoadU(DF(), to), keep, acc[r][c]), DF(), to);
    }
  }
}

// sum += weights V over tokens [first, last), for one row and 16 channels.
template <class T>
HWY_INLINE void AddRow(const float* weights, uint32_t first, uint32_t last, const T* panel,
                       float* sum) {
  if (first >= last) return;
  Ahead none = {};
  VF acc[1][kVecs];
  QUIRE_UNROLL for (size_t c = 0; c < kVecs; ++c) acc[0][c] = hn::LoadU(DF(), sum + c * kVecLanes);
  Multiply<1, 1, 1, 0, false>(weights + first, panel + first * size_t{16}, 0, last - first, acc,
                              none);
  QUIRE_UNROLL for (size_t c = 0; c < kVecs; ++c) hn::StoreU(acc[0][c], DF(), sum + c * kVecLanes);
}

// As AddValues for one block, when rows see different tokens: each row alone up to where the last
// row begins, all together while they can, each alone to its end. A row's order stays the same.
template <int R, class T>
HWY_NOINLINE void AddRaggedValues(const Tile& t, const T* panel, float* o) {
  uint32_t first = 0, last = 0xFFFFFFFFu;  // what all rows see
  for (int r = 0; r < R; ++r) {
    if (t.first[r] > first) first = t.first[r];
    if (t.last[r] < last) last = t.last[r];
  }
  if (first >= last) first = last = 0;
  alignas(64) float sum[R][16] = {};
  for (int r = 0; r < R; ++r) {
    const uint32_t end = first < last ? first : t.last[r];
    AddRow(t.scores + static_cast<size_t>(r) * kScoreStride, t.first[r], end, panel, sum[r]);
  }
  if (first < last) {
    Ahead none = {};
    VF acc[R][kVecs];
    QUIRE_UNROLL for (int r = 0; r < R; ++r) QUIRE_UNROLL for (size_t c = 0; c < kVecs; ++c)
        acc[r][c] = hn::LoadU(DF(), sum[r] + c * kVecLanes);
    Multiply<R, 1, 1, kScoreStride, false>(t.scores + first, panel + first * size_t{16}, 0,
                                           last - first, acc, none);
    QUIRE_UNROLL for (int r = 0; r < R; ++r) QUIRE_UNROLL for (size_t c = 0; c < kVecs; ++c)
        hn::StoreU(acc[r][c], DF(), sum[r] + c * kVecLanes);
    for (int r = 0; r < R; ++r)
      AddRow(t.scores + static_cast<size_t>(r) * kScoreStride, last, t.last[r], panel, sum[r]);
  }
  for (int r = 0; r < R; ++r) {
    if (t.last[r] == 0) continue;  // o * 1 + 0 would turn -0 into +0
    float* to = o + static_cast<size_t>(r) * t.o_stride;
    Store16(Fma16(Load16(to), Set16(t.keep[r]), Load16(sum[r])), to);
  }
}

template <int R, bool kAhead, class T>
HWY_NOINLINE void Values(Tile& t, Ahead& cursors) {
  bool ragged = false;
  for (int r = 1; r < R; ++r) ragged = ragged || t.first[r] != t.first[0] || t.last[r] != t.last[0];
  const T* v = static_cast<const T*>(t.v);
  const uint32_t first = t.first[0], last = t.last[0];
  constexpr int kPanels = NumPanels(R);
  Ahead ahead = cursors;
  size_t panel = 0;
  if (ragged) {
    for (; panel < t.num_v_panels; ++panel)
      AddRaggedValues<R>(t, v + panel * t.v_panel_step, t.o + panel * 16);
    if (t.narrow_v != nullptr) AddRaggedValues<R>(t, t.narrow_v, t.o + panel * 16);
    return;
  }
  for (; panel + kPanels <= t.num_v_panels; panel += kPanels)
    AddValues<R, kPanels, kAhead>(t, first, last, v + panel * t.v_panel_step, t.v_panel_step,
                                  t.o + panel * 16, ahead);
  for (; panel < t.num_v_panels; ++panel)
    AddValues<R, 1, kAhead>(t, first, last, v + panel * t.v_panel_step, t.v_panel_step,
                            t.o + panel * 16, ahead);
  if (t.narrow_v != nullptr)
    AddValues<R, 1, false>(t, first, last, t.narrow_v, 0, t.o + panel * 16, ahead);
  cursors = ahead;
}

}  // namespace HWY_NAMESPACE
}  // namespace quire
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
