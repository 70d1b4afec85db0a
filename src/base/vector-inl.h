// Sixteen f32 lanes, the unit in which every kernel computes, for the instruction set that is being
// compiled: one vector with AVX-512, two with AVX2, sixteen single floats in portable code.
//
// Included by kernel sources after <hwy/foreach_target.h>, once for each target. A kernel that uses
// only these operations gives the same bits on every target:
//   - Fma16 is one rounding everywhere (fmaf where there is no instruction);
//   - SumLanes16 adds lanes i and i+8, then i+4, i+2, i+1 (`sum16`, docs/formats.md);
//   - MaxLanes16 needs no order; Exp2x16 is our own polynomial.
//
// Not here: std:: functions. They would be compiled for the target and leak into plain code.
#if defined(QUIRE_BASE_VECTOR_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIRE_BASE_VECTOR_INL_H_
#undef QUIRE_BASE_VECTOR_INL_H_
#else
#define QUIRE_BASE_VECTOR_INL_H_
#endif

#include <hwy/highway.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "base/half.h"

HWY_BEFORE_NAMESPACE();
namespace quire {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DF = hn::CappedTag<float, 16>;
using DI = hn::RebindToSigned<DF>;
using VF = hn::Vec<DF>;
using VI = hn::Vec<DI>;

inline constexpr size_t kVecLanes = hn::MaxLanes(DF());
inline constexpr size_t kVecs = 16 / kVecLanes;  // vectors that make 16 lanes

// One rounding: a * b + c.
HWY_INLINE VF Fma(VF a, VF b, VF c) {
#if HWY_NATIVE_FMA
  return hn::MulAdd(a, b, c);
#else
  const DF d;
  alignas(64) float x[kVecLanes], y[kVecLanes], z[kVecLanes];
  hn::Store(a, d, x);
  hn::Store(b, d, y);
  hn::Store(c, d, z);
  for (size_t i = 0; i < kVecLanes; ++i) z[i] = fmaf(x[i], y[i], z[i]);
  return hn::Load(d, z);
#endif
}

struct F32x16 {
  VF v[kVecs];
};

HWY_INLINE F32x16 Zero16() {
  F32x16 r;
  for (size_t i = 0; i < kVecs; ++i) r.v[i] = hn::Zero(DF());
  return r;
}
HWY_INLINE F32x16 Set16(float x) {
  F32x16 r;
  for (size_t i = 0; i < kVecs; ++i) r.v[i] = hn::Set(DF(), x);
  return r;
}
HWY_INLINE F32x16 Load16(const float* p) {  // no alignment needed
  F32x16 r;
  for (size_t i = 0; i < kVecs; ++i) r.v[i] = hn::LoadU(DF(), p + i * kVecLanes);
  return r;
}
HWY_INLINE void Store16(F32x16 a, float* p) {
  for (size_t i = 0; i < kVecs; ++i) hn::StoreU(a.v[i], DF(), p + i * kVecLanes);
}
HWY_INLINE F32x16 Add16(F32x16 a, F32x16 b) {
  for (size_t i = 0; i < kVecs; ++i) a.v[i] = hn::Add(a.v[i], b.v[i]);
  return a;
}
HWY_INLINE F32x16 Sub16(F32x16 a, F32x16 b) {
  for (size_t i = 0; i < kVecs; ++i) a.v[i] = hn::Sub(a.v[i], b.v[i]);
  return a;
}
HWY_INLINE F32x16 Mul16(F32x16 a, F32x16 b) {
  for (size_t i = 0; i < kVecs; ++i) a.v[i] = hn::Mul(a.v[i], b.v[i]);
  return a;
}
HWY_INLINE F32x16 Div16(F32x16 a, F32x16 b) {
  for (size_t i = 0; i < kVecs; ++i) a.v[i] = hn::Div(a.v[i], b.v[i]);
  return a;
}
HWY_INLINE F32x16 Max16(F32x16 a, F32x16 b) {
  for (size_t i = 0; i < kVecs; ++i) a.v[i] = hn::Max(a.v[i], b.v[i]);
  return a;
}
HWY_INLINE F32x16 Min16(F32x16 a, F32x16 b) {
  for (size_t i = 0; i < kVecs; ++i) a.v[i] = hn::Min(a.v[i], b.v[i]);
  return a;
}
HWY_INLINE F32x16 Abs16(F32x16 a) {
  for (size_t i = 0; i < kVecs; ++i) a.v[i] = hn::Abs(a.v[i]);
  return a;
}
HWY_INLINE F32x16 Fma16(F32x16 a, F32x16 b, F32x16 c) {
  for (size_t i = 0; i < kVecs; ++i) c.v[i] = Fma(a.v[i], b.v[i], c.v[i]);
  return c;
}

// Sixteen halves to f32, exactly.
HWY_INLINE F32x16 LoadHalf16(const uint16_t* p) {
  F32x16 r;
  const DF d;
#if HWY_TARGET == HWY_SCALAR
  alignas(64) float x[kVecLanes];
  for (size_t i = 0; i < kVecs; ++i) {
    for (size_t j = 0; j < kVecLanes; ++j) x[j] = HalfToFloat(p[i * kVecLanes + j]);
    r.v[i] = hn::Load(d, x);
  }
#else
  const hn::Rebind<hwy::float16_t, DF> dh;
  for (size_t i = 0; i < kVecs; ++i)
    r.v[i] =
        hn::PromoteTo(d, hn::LoadU(dh, reinterpret_cast<const hwy::float16_t*>(p + i * kVecLanes)));
#endif
  return r;
}

// Sixteen f32 to halves: round to nearest even, finite values clamped to +-65,504 first (h(x)).
HWY_INLINE void StoreHalf16Saturated(F32x16 a, uint16_t* p) {
#if HWY_TARGET == HWY_SCALAR
  alignas(64) float x[16];
  Store16(a, x);
  for (size_t i = 0; i < 16; ++i) p[i] = FloatToHalfSaturated(x[i]);
#else
  const DF d;
  const hn::Rebind<hwy::float16_t, DF> dh;
  const VF top = hn::Set(d, 65504.0f);
  const VF infinity = hn::Inf(d);
  for (size_t i = 0; i < kVecs; ++i) {
    const VF clamped = hn::Max(hn::Min(a.v[i], top), hn::Neg(top));
    // Infinity and NaN pass as they are: the caller looks for them and fails the request.
    const VF out = hn::IfThenElse(hn::Lt(hn::Abs(a.v[i]), infinity), clamped, a.v[i]);
    hn::StoreU(hn::DemoteTo(dh, out), dh, reinterpret_cast<hwy::float16_t*>(p + i * kVecLanes));
  }
#endif
}

// sum16: lanes i and i + 8, then i + 4, i + 2, i + 1.
HWY_INLINE float SumLanes16(F32x16 a) {
#if HWY_TARGET == HWY_AVX2
  const __m256 eight = _mm256_add_ps(a.v[0].raw, a.v[1].raw);
  __m128 x = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  x = _mm_add_ps(x, _mm_movehl_ps(x, x));
  return _mm_cvtss_f32(_mm_add_ss(x, _mm_movehdup_ps(x)));
#elif HWY_TARGET == HWY_AVX3
  const __m256 eight =
      _mm256_add_ps(_mm512_castps512_ps256(a.v[0].raw), _mm512_extractf32x8_ps(a.v[0].raw, 1));
  __m128 x = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  x = _mm_add_ps(x, _mm_movehl_ps(x, x));
  return _mm_cvtss_f32(_mm_add_ss(x, _mm_movehdup_ps(x)));
#else
  alignas(64) float x[16];
  Store16(a, x);
  for (size_t half = 8; half >= 1; half /= 2)
    for (size_t i = 0; i < half; ++i) x[i] = x[i] + x[i + half];
  return x[0];
#endif
}

HWY_INLINE float MaxLanes16(F32x16 a) {
  VF m = a.v[0];
  for (size_t i = 1; i < kVecs; ++i) m = hn::Max(m, a.v[i]);
  return hn::GetLane(hn::MaxOfLanes(DF(), m));
}

// p = p * x + term.
template <size_t N>
HWY_INLINE void FmaTerm(const VF (&x)[N], float term, VF (&p)[N]) {
  for (size_t i = 0; i < N; ++i) p[i] = Fma(p[i], x[i], hn::Set(DF(), term));
}

// 2^-y of N vectors, y >= -127, relative error below 3e-7; exactly 1 at 0, so a softmax whose
// maximum did not change rescales no bit. y above 126 is taken as 126: the caller selects masked
// lanes away. Several vectors at once hide the latency of the polynomial.
template <size_t N>
HWY_INLINE void Exp2Minus(VF (&y)[N]) {
  const DF d;
  const DI di;
  // A sum with 1.5 x 2^23 is rounded to an integer, which then stands in its lowest bits.
  const VF shift = hn::Set(d, 12582912.0f);
  VF shifted[N], p[N];
  for (size_t i = 0; i < N; ++i) y[i] = hn::Min(y[i], hn::Set(d, 126.0f));
  for (size_t i = 0; i < N; ++i) shifted[i] = hn::Sub(shift, y[i]);
  for (size_t i = 0; i < N; ++i) y[i] = hn::Add(y[i], hn::Sub(shifted[i], shift));
  // (2^-f - 1) / f on [-0.5, 0.5], minimax: 9.4e-8 of 2^-f. The constant term is exactly 1.
  for (size_t i = 0; i < N; ++i)
    p[i] = Fma(y[i], hn::Set(d, -1.326940837e-3f), hn::Set(d, 9.671294130e-3f));
  FmaTerm(y, -5.550711229e-2f, p);
  FmaTerm(y, 2.402224690e-1f, p);
  FmaTerm(y, -6.931470037e-1f, p);
  FmaTerm(y, 1.0f, p);
  for (size_t i = 0; i < N; ++i) {
    const VI exponent = hn::ShiftLeft<23>(hn::BitCast(di, shifted[i]));
    y[i] = hn::BitCast(d, hn::Add(hn::BitCast(di, p[i]), exponent));
  }
}
// 2^x for x <= 127.
HWY_INLINE VF Exp2(VF x) {
  VF minus[1] = {hn::Neg(x)};
  Exp2Minus(minus);
  return minus[0];
}
HWY_INLINE F32x16 Exp2x16(F32x16 x) {
  for (size_t i = 0; i < kVecs; ++i) x.v[i] = hn::Neg(x.v[i]);
  Exp2Minus(x.v);
  return x;
}

}  // namespace HWY_NAMESPACE
}  // namespace quire
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
