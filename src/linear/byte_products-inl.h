// Integer products of sixteen lanes, for the instruction set that is being compiled. A lane is 32
// bits wide: four bytes, two s16 or one s32. Highway 1.0.3 has no vpmaddubsw, hence intrinsics.
//
// All sums are exact as the kernels use them, so every target gives the same integers.
#if defined(QUIRE_LINEAR_BYTE_PRODUCTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIRE_LINEAR_BYTE_PRODUCTS_INL_H_
#undef QUIRE_LINEAR_BYTE_PRODUCTS_INL_H_
#else
#define QUIRE_LINEAR_BYTE_PRODUCTS_INL_H_
#endif

#include <string.h>

#include "base/vector-inl.h"

// The empty asm keeps an accumulator in its register and its order: GCC 12 else computes all
// products of an unrolled loop first and spills them.
#define QUIRE_KEEP(v) asm("" : "+v"(v))

HWY_BEFORE_NAMESPACE();
namespace quire {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3

#if HWY_TARGET == HWY_AVX2
using RawInt = __m256i;
#define QUIRE_INT(name) _mm256_##name
#define QUIRE_INT_BITS(name) _mm256_##name##_si256
#else
using RawInt = __m512i;
#define QUIRE_INT(name) _mm512_##name
#define QUIRE_INT_BITS(name) _mm512_##name##_si512
#endif

struct Lanes {  // sixteen lanes
  RawInt v[kVecs];
};
using Four = RawInt;  // the same 32 bits in every lane

HWY_INLINE Lanes LoadLanes(const void* p) {  // 64 bytes
  Lanes a;
  for (size_t i = 0; i < kVecs; ++i)
    a.v[i] = QUIRE_INT_BITS(loadu)(static_cast<const RawInt*>(p) + i);
  return a;
}
HWY_INLINE void StoreLanes(const Lanes& a, void* p) {
  for (size_t i = 0; i < kVecs; ++i) QUIRE_INT_BITS(storeu)(static_cast<RawInt*>(p) + i, a.v[i]);
}
HWY_INLINE Four BroadcastFour(const void* p) {
  int32_t x;
  memcpy(&x, p, 4);
  return QUIRE_INT(set1_epi32)(x);
}
HWY_INLINE Lanes LowNibbles(Lanes a) {
  for (size_t i = 0; i < kVecs; ++i) a.v[i] = QUIRE_INT_BITS(and)(a.v[i], QUIRE_INT(set1_epi8)(15));
  return a;
}
HWY_INLINE Lanes HighNibbles(Lanes a) {
  for (size_t i = 0; i < kVecs; ++i)
    a.v[i] = QUIRE_INT_BITS(and)(QUIRE_INT(srli_epi16)(a.v[i], 4), QUIRE_INT(set1_epi8)(15));
  return a;
}
// Signed bytes 0 and 2 of each lane, then 1 and 3, as two s16.
HWY_INLINE Lanes EvenBytes(Lanes a) {
  for (size_t i = 0; i < kVecs; ++i)
    a.v[i] = QUIRE_INT(srai_epi16)(QUIRE_INT(slli_epi16)(a.v[i], 8), 8);
  return a;
}
HWY_INLINE Lanes OddBytes(Lanes a) {
  for (size_t i = 0; i < kVecs; ++i) a.v[i] = QUIRE_INT(srai_epi16)(a.v[i], 8);
  return a;
}
// Two s16 a lane: products of u8 (w) and s8 (x), summed in pairs. first: acc = p, not acc + p.
HWY_INLINE void AddByteProducts(Lanes& acc, const Lanes& w, Four x, bool first) {
  for (size_t i = 0; i < kVecs; ++i) {
    const RawInt p = QUIRE_INT(maddubs_epi16)(w.v[i], x);
    acc.v[i] = first ? p : QUIRE_INT(add_epi16)(acc.v[i], p);
    QUIRE_KEEP(acc.v[i]);
  }
}
// One s32 a lane: products of two s16, summed.
HWY_INLINE void AddWordProducts(Lanes& acc, const Lanes& w, Four x, bool first) {
  for (size_t i = 0; i < kVecs; ++i) {
    const RawInt p = QUIRE_INT(madd_epi16)(w.v[i], x);
    acc.v[i] = first ? p : QUIRE_INT(add_epi32)(acc.v[i], p);
    QUIRE_KEEP(acc.v[i]);
  }
}
HWY_INLINE Lanes SumPairs(Lanes a) {  // two s16 to one s32
  for (size_t i = 0; i < kVecs; ++i)
    a.v[i] = QUIRE_INT(madd_epi16)(a.v[i], QUIRE_INT(set1_epi16)(1));
  return a;
}
HWY_INLINE Lanes AddToLanes(Lanes a, int32_t x) {  // s32
  for (size_t i = 0; i < kVecs; ++i)
    a.v[i] = QUIRE_INT(add_epi32)(a.v[i], QUIRE_INT(set1_epi32)(x));
  return a;
}
HWY_INLINE F32x16 LanesToFloat(const Lanes& a) {  // s32
  F32x16 r;
  for (size_t i = 0; i < kVecs; ++i) r.v[i] = VF{QUIRE_INT(cvtepi32_ps)(a.v[i])};
  return r;
}

#undef QUIRE_INT
#undef QUIRE_INT_BITS

#else  // portable; the products stay calls, or unrolled tiles would take minutes to compile

struct Lanes {
  uint8_t bytes[64];
};
struct Four {
  uint8_t bytes[4];
};

HWY_INLINE int32_t LaneS32(const Lanes& a, size_t i) {
  int32_t x;
  memcpy(&x, a.bytes + 4 * i, 4);
  return x;
}
HWY_INLINE void SetLaneS32(Lanes& a, size_t i, int32_t x) { memcpy(a.bytes + 4 * i, &x, 4); }
HWY_INLINE int32_t WordS16(const uint8_t* p) {
  int16_t x;
  memcpy(&x, p, 2);
  return x;
}
HWY_INLINE void SetWordS16(uint8_t* p, int32_t x) {
  const int16_t y = static_cast<int16_t>(x);
  memcpy(p, &y, 2);
}

HWY_INLINE Lanes LoadLanes(const void* p) {
  Lanes a;
  memcpy(a.bytes, p, 64);
  return a;
}
HWY_INLINE void StoreLanes(const Lanes& a, void* p) { memcpy(p, a.bytes, 64); }
HWY_INLINE Four BroadcastFour(const void* p) {
  Four x;
  memcpy(x.bytes, p, 4);
  return x;
}
HWY_INLINE Lanes LowNibbles(Lanes a) {
  for (size_t i = 0; i < 64; ++i) a.bytes[i] = a.bytes[i] & 15;
  return a;
}
HWY_INLINE Lanes HighNibbles(Lanes a) {
  for (size_t i = 0; i < 64; ++i) a.bytes[i] = a.bytes[i] >> 4;
  return a;
}
HWY_INLINE Lanes EvenBytes(Lanes a) {
  for (size_t i = 0; i < 64; i += 2) SetWordS16(a.bytes + i, static_cast<int8_t>(a.bytes[i]));
  return a;
}
HWY_INLINE Lanes OddBytes(Lanes a) {
  for (size_t i = 0; i < 64; i += 2) SetWordS16(a.bytes + i, static_cast<int8_t>(a.bytes[i + 1]));
  return a;
}
inline HWY_NOINLINE void AddByteProducts(Lanes& acc, const Lanes& w, Four x, bool first) {
  for (size_t i = 0; i < 64; i += 2) {
    const int32_t p = w.bytes[i] * static_cast<int8_t>(x.bytes[i % 4]) +
                      w.bytes[i + 1] * static_cast<int8_t>(x.bytes[i % 4 + 1]);
    SetWordS16(acc.bytes + i, first ? p : WordS16(acc.bytes + i) + p);
  }
}
inline HWY_NOINLINE void AddWordProducts(Lanes& acc, const Lanes& w, Four x, bool first) {
  for (size_t i = 0; i < 16; ++i) {
    const int32_t p = WordS16(w.bytes + 4 * i) * WordS16(x.bytes) +
                      WordS16(w.bytes + 4 * i + 2) * WordS16(x.bytes + 2);
    SetLaneS32(acc, i, first ? p : LaneS32(acc, i) + p);
  }
}
HWY_INLINE Lanes SumPairs(Lanes a) {
  for (size_t i = 0; i < 16; ++i)
    SetLaneS32(a, i, WordS16(a.bytes + 4 * i) + WordS16(a.bytes + 4 * i + 2));
  return a;
}
HWY_INLINE Lanes AddToLanes(Lanes a, int32_t x) {
  for (size_t i = 0; i < 16; ++i) SetLaneS32(a, i, LaneS32(a, i) + x);
  return a;
}
HWY_INLINE F32x16 LanesToFloat(const Lanes& a) {
  alignas(64) float x[16];
  for (size_t i = 0; i < 16; ++i) x[i] = static_cast<float>(LaneS32(a, i));
  return Load16(x);
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace quire
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
