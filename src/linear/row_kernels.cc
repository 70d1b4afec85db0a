// Row operations beside the products: activations to codes, norm, rope, SiLU, GELU.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "linear/row_kernels.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include "base/check.h"
#include "base/vector-inl.h"
#include "linear/kernel_parts.h"

HWY_BEFORE_NAMESPACE();
namespace quire {
namespace HWY_NAMESPACE {

// The first `count` (1..16) floats at p, then zeros.
HWY_INLINE F32x16 LoadPart16(const float* p, int count) {
  if (count == 16) return Load16(p);
  alignas(64) float x[16] = {};
  for (int i = 0; i < count; ++i) x[i] = p[i];
  return Load16(x);
}
HWY_INLINE void StorePart16(F32x16 a, float* p, int count) {
  if (count == 16) return Store16(a, p);
  alignas(64) float x[16];
  Store16(a, x);
  for (int i = 0; i < count; ++i) p[i] = x[i];
}

#if HWY_TARGET == HWY_SCALAR
HWY_INLINE void Quantise32(const float* x, int m, int block, const Int8Rows& out) {
  QuantiseBlock(x, m, block, out);
}
#else
inline constexpr size_t kVecsOfBlock = kActivationBlock / kVecLanes;

// 32 codes, which fit in bytes, in order; and as s16 with 0 2 1 3 in each four (Int8Rows.wide).
HWY_INLINE void StoreCodes(const VI (&code)[kVecsOfBlock], int8_t* codes, int16_t* wide) {
#if HWY_TARGET == HWY_AVX2
  // The packs work in halves of 128 bits: 0..3 of each input, then 4..7.
  const __m256i low = _mm256_packs_epi32(code[0].raw, code[1].raw);
  const __m256i high = _mm256_packs_epi32(code[2].raw, code[3].raw);
  const __m256i bytes = _mm256_packs_epi16(low, high);
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(codes), _mm256_permutevar8x32_epi32(bytes, order));
  const __m256i words[2] = {low, high};
  for (size_t i = 0; i < 2; ++i) {
    const __m256i straight = _mm256_permute4x64_epi64(words[i], 0xD8);
    const __m256i swapped = _mm256_shufflehi_epi16(_mm256_shufflelo_epi16(straight, 0xD8), 0xD8);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(wide) + i, swapped);
  }
#else
  (void)wide;  // products by byte dots read none
  const hn::Rebind<int8_t, DI> d8;
  for (size_t i = 0; i < kVecsOfBlock; ++i)
    hn::StoreU(hn::DemoteTo(d8, code[i]), d8, codes + i * kVecLanes);
#endif
}

// QuantiseBlock of activations.h with vectors; the same bits.
HWY_INLINE void Quantise32(const float* x, int m, int block, const Int8Rows& out) {
  const DF d;
  const DI di;
  VF v[kVecsOfBlock];
  VI most = hn::Zero(di);
  for (size_t i = 0; i < kVecsOfBlock; ++i) {
    v[i] = hn::LoadU(d, x + i * kVecLanes);
    most = hn::Max(most, hn::BitCast(di, hn::Abs(v[i])));  // as integers: no trouble with NaN
  }
  const int32_t bits = hn::GetLane(hn::MaxOfLanes(di, most));
  const float amax = hn::GetLane(hn::BitCast(d, hn::Set(di, bits)));
  const size_t at = out.At(m, block), first = at * kActivationBlock;
  const bool finite = bits < 0x7F800000;
  const bool zero = amax < 0x1p-120f;
  float scale = 0.0f;
  if (!finite) scale = __builtin_nanf("");
  VI sum[2] = {hn::Zero(di), hn::Zero(di)};  // of each half
  VI code[kVecsOfBlock];
  if (finite && !zero) {
    scale = amax / 127.0f;
    const VF inverse = hn::Set(d, 127.0f / amax);
    for (size_t i = 0; i < kVecsOfBlock; ++i) {
      code[i] = hn::NearestInt(hn::Mul(v[i], inverse));
      const size_t half = 2 * i / kVecsOfBlock;
      sum[half] = hn::Add(sum[half], code[i]);
    }
  } else {
    for (size_t i = 0; i < kVecsOfBlock; ++i) code[i] = hn::Zero(di);
  }
  StoreCodes(code, out.codes + first, out.wide + first);
  const int32_t first_sum = hn::GetLane(hn::SumOfLanes(di, sum[0]));
  const int32_t second_sum = hn::GetLane(hn::SumOfLanes(di, sum[1]));
  const int32_t total = first_sum + second_sum;
  out.scales[at] = scale;
  out.sums[at] = total;
  out.half_sums[at] = PairOfSums(first_sum, second_sum);
  out.scaled_sums[at] = scale * static_cast<float>(total);
}
#endif

void QuantiseBlocks(const float* rows, int64_t row_stride, int m0, int m1, int b0, int b1,
                    const Int8Rows& out) {
  QUIRE_CHECK(out.num_cols % kActivationBlock == 0);
  QUIRE_CHECK(0 <= b0 && b1 <= out.num_cols / kActivationBlock);
  for (int m = m0; m < m1; ++m)
    for (int b = b0; b < b1; ++b)
      Quantise32(rows + m * row_stride + b * kActivationBlock, m, b, out);
}

void QuantiseRows(const float* rows, int64_t row_stride, int m0, int m1, const Int8Rows& out) {
  QuantiseBlocks(rows, row_stride, m0, m1, 0, out.num_cols / kActivationBlock, out);
}

template <bool kAdd>
HWY_INLINE void Normalise(const float* x, const float* weight, int n, float eps, float* out) {
  F32x16 squares = Zero16();
  for (int i = 0; i < n; i += 16) {
    const F32x16 v = LoadPart16(x + i, HWY_MIN(16, n - i));
    squares = Fma16(v, v, squares);
  }
  const float mean = SumLanes16(squares) / static_cast<float>(n);
  const F32x16 inverse = Set16(1.0f / __builtin_sqrtf(mean + eps));
  for (int i = 0; i < n; i += 16) {
    const int count = HWY_MIN(16, n - i);
    F32x16 y = Mul16(LoadPart16(x + i, count), inverse);
    y = Mul16(y, LoadPart16(weight + i, count));
    if (kAdd) y = Add16(LoadPart16(out + i, count), y);
    StorePart16(y, out + i, count);
  }
}

void RmsNorm(const float* x, const float* weight, int n, float eps, float* out) {
  Normalise<false>(x, weight, n, eps, out);
}

void AddRmsNorm(const float* x, const float* weight, int n, float eps, float* out) {
  Normalise<true>(x, weight, n, eps, out);
}

// (a, b) turned by the angle of (c, s). One order of roundings for every layout.
HWY_INLINE void Turn(F32x16& a, F32x16& b, F32x16 c, F32x16 s) {
  const F32x16 a_cos = Mul16(a, c), a_sin = Mul16(a, s);
  F32x16 minus_b = b;
  for (size_t i = 0; i < kVecs; ++i) minus_b.v[i] = hn::Neg(b.v[i]);
  a = Fma16(minus_b, s, a_cos);
  b = Fma16(b, c, a_sin);
}

// Sixteen pairs (2j, 2j + 1) to two sets of lanes and back.
HWY_INLINE void LoadPairs(const float* p, F32x16& a, F32x16& b) {
  for (size_t i = 0; i < kVecs; ++i)
    hn::LoadInterleaved2(DF(), p + 2 * i * kVecLanes, a.v[i], b.v[i]);
}
HWY_INLINE void StorePairs(F32x16 a, F32x16 b, float* p) {
  for (size_t i = 0; i < kVecs; ++i)
    hn::StoreInterleaved2(a.v[i], b.v[i], DF(), p + 2 * i * kVecLanes);
}

HWY_INLINE void RopeHead(float* x, int half, const float* cos, const float* sin, RopePairs pairs) {
  for (int j = 0; j < half; j += 16) {
    const int count = HWY_MIN(16, half - j);
    const F32x16 c = LoadPart16(cos + j, count), s = LoadPart16(sin + j, count);
    F32x16 a, b;
    if (pairs == RopePairs::kHalves) {
      a = LoadPart16(x + j, count);
      b = LoadPart16(x + half + j, count);
      Turn(a, b, c, s);
      StorePart16(a, x + j, count);
      StorePart16(b, x + half + j, count);
    } else if (count == 16) {
      LoadPairs(x + 2 * j, a, b);
      Turn(a, b, c, s);
      StorePairs(a, b, x + 2 * j);
    } else {
      alignas(64) float part[32] = {};
      for (int i = 0; i < 2 * count; ++i) part[i] = x[2 * j + i];
      LoadPairs(part, a, b);
      Turn(a, b, c, s);
      StorePairs(a, b, part);
      for (int i = 0; i < 2 * count; ++i) x[2 * j + i] = part[i];
    }
  }
}

void Rope(float* x, int num_heads, int head_dim, int n_rot, const float* cos, const float* sin,
          RopePairs pairs) {
  QUIRE_CHECK(n_rot % 2 == 0 && n_rot <= head_dim);
  for (int h = 0; h < num_heads; ++h)
    RopeHead(x + static_cast<int64_t>(h) * head_dim, n_rot / 2, cos, sin, pairs);
}

// g / (1 + 2^(-s)) for s of the sign of g, given t = -|s|. With e = 2^t, which cannot overflow:
// g / (1 + e) for g >= 0, else g e / (1 + e). e below 2^-126 is taken as 0.
HWY_INLINE VF Gated(VF g, VF t) {
  const DF d;
  const VF one = hn::Set(d, 1.0f);
  const VF e = hn::IfThenElse(hn::Lt(t, hn::Set(d, -126.0f)), hn::Zero(d), Exp2(t));
  const VF top = hn::IfThenElse(hn::Lt(g, hn::Zero(d)), hn::Mul(g, e), g);
  return hn::Div(top, hn::Add(one, e));
}

// g / (1 + exp(-g)).
HWY_INLINE VF Silu(VF g) {
  return Gated(g, hn::Mul(hn::Abs(g), hn::Set(DF(), -1.44269504f)));  // log2(e)
}

// (1 + tanh(u)) / 2 = 1 / (1 + exp(-2 u)), so the GELU is g / (1 + exp(-2 u)) with
// 2 u log2(e) = g (c + 0.044715 c g^2), c = sqrt(8 / pi) log2(e).
HWY_INLINE VF Gelu(VF g) {
  const DF d;
  const VF sum = Fma(hn::Mul(g, g), hn::Set(d, -0.102943240f), hn::Set(d, -2.30220820f));
  return Gated(g, hn::Mul(hn::Abs(g), sum));
}

template <VF (*kActivation)(VF)>
void GateMultiply(const float* gate, const float* up, float* out, int n) {
  for (int i = 0; i < n; i += 16) {
    const int count = HWY_MIN(16, n - i);
    F32x16 g = LoadPart16(gate + i, count);
    for (size_t j = 0; j < kVecs; ++j) g.v[j] = kActivation(g.v[j]);
    StorePart16(Mul16(g, LoadPart16(up + i, count)), out + i, count);
  }
}

LinearKernels RowTable() {
  return {.quantise_rows = QuantiseRows,
          .quantise_blocks = QuantiseBlocks,
          .multiply = nullptr,
          .rms_norm = RmsNorm,
          .add_rms_norm = AddRmsNorm,
          .rope = Rope,
          .silu_multiply = GateMultiply<Silu>,
          .gelu_multiply = GateMultiply<Gelu>};
}

}  // namespace HWY_NAMESPACE
}  // namespace quire
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quire {

LinearKernels RowKernels(InstructionSet set) {
  switch (set) {
    case InstructionSet::kPortable:
      return N_SCALAR::RowTable();
    case InstructionSet::kAvx2:
      return N_AVX2::RowTable();
    case InstructionSet::kAvx512:
      return N_AVX3::RowTable();
  }
  QUIRE_CHECK(false);
}

}  // namespace quire
#endif  // HWY_ONCE
