// Integer operations on sixteen lanes, for the instruction set that is being compiled. A lane is 32
// bits wide: four bytes, two s16 or one s32. Highway 1.0.3 has no byte products, hence intrinsics.
//
// Products of codes come in two shapes, of which a target has one:
//   kHasByteDots   AVX-512 (VNNI) and portable code: four u8 x s8 into one s32
//   else           AVX2: two u8 x s8 into one s16, which holds only a few, and two s16 into an s32
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

inline constexpr bool kHasByteDots = HWY_TARGET != HWY_AVX2;

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

// Defines OP(a, b) on each vector.
#define QUIRE_LANES_OP(Op, call)                                      \
  HWY_INLINE Lanes Op(Lanes a, const Lanes& b) {                      \
    for (size_t i = 0; i < kVecs; ++i) a.v[i] = call(a.v[i], b.v[i]); \
    return a;                                                         \
  }
QUIRE_LANES_OP(AddLanes, QUIRE_INT(add_epi32))
QUIRE_LANES_OP(SubLanes, QUIRE_INT(sub_epi32))
QUIRE_LANES_OP(MulLanes, QUIRE_INT(mullo_epi32))
QUIRE_LANES_OP(OrLanes, QUIRE_INT_BITS(or))
QUIRE_LANES_OP(WordDots, QUIRE_INT(madd_epi16))  // two s16 x s16 into one s32
#undef QUIRE_LANES_OP

HWY_INLINE Lanes LoadLanes(const void* p) {  // 64 bytes
  Lanes a;
  for (size_t i = 0; i < kVecs; ++i)
    a.v[i] = QUIRE_INT_BITS(loadu)(static_cast<const RawInt*>(p) + i);
  return a;
}
HWY_INLINE void StoreLanes(const Lanes& a, void* p) {
  for (size_t i = 0; i < kVecs; ++i) QUIRE_INT_BITS(storeu)(static_cast<RawInt*>(p) + i, a.v[i]);
}
HWY_INLINE Lanes SetLanes(int32_t x) {
  Lanes a;
  for (size_t i = 0; i < kVecs; ++i) a.v[i] = QUIRE_INT(set1_epi32)(x);
  return a;
}
HWY_INLINE Lanes BroadcastLane(const void* p) {
  int32_t x;
  memcpy(&x, p, 4);
  return SetLanes(x);
}
HWY_INLINE Lanes AndBytes(Lanes a, int mask) {
  const RawInt m = QUIRE_INT(set1_epi8)(static_cast<char>(mask));
  for (size_t i = 0; i < kVecs; ++i) a.v[i] = QUIRE_INT_BITS(and)(a.v[i], m);
  return a;
}
HWY_INLINE Lanes XorBytes(Lanes a, int mask) {
  const RawInt m = QUIRE_INT(set1_epi8)(static_cast<char>(mask));
  for (size_t i = 0; i < kVecs; ++i) a.v[i] = QUIRE_INT_BITS(xor)(a.v[i], m);
  return a;
}
HWY_INLINE Lanes ShiftLeftLanes(Lanes a, int bits) {
  const __m128i count = _mm_cvtsi32_si128(bits);
  for (size_t i = 0; i < kVecs; ++i) a.v[i] = QUIRE_INT(sll_epi32)(a.v[i], count);
  return a;
}
HWY_INLINE Lanes ShiftRightLanes(Lanes a, int bits) {  // brings in zeros
  const __m128i count = _mm_cvtsi32_si128(bits);
  for (size_t i = 0; i < kVecs; ++i) a.v[i] = QUIRE_INT(srl_epi32)(a.v[i], count);
  return a;
}
HWY_INLINE Lanes ShiftRightSigned(Lanes a, int bits) {
  const __m128i count = _mm_cvtsi32_si128(bits);
  for (size_t i = 0; i < kVecs; ++i) a.v[i] = QUIRE_INT(sra_epi32)(a.v[i], count);
  return a;
}
// table[byte] for bytes of 0..15.
HWY_INLINE Lanes LookUp(const uint8_t* table, Lanes bytes) {
  const __m128i t = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
#if HWY_TARGET == HWY_AVX2
  const RawInt wide = _mm256_broadcastsi128_si256(t);
#else
  const RawInt wide = _mm512_broadcast_i32x4(t);
#endif
  for (size_t i = 0; i < kVecs; ++i) bytes.v[i] = QUIRE_INT(shuffle_epi8)(wide, bytes.v[i]);
  return bytes;
}
HWY_INLINE F32x16 LanesToFloat(const Lanes& a) {  // s32
  F32x16 r;
  for (size_t i = 0; i < kVecs; ++i) r.v[i] = VF{QUIRE_INT(cvtepi32_ps)(a.v[i])};
  return r;
}
HWY_INLINE Lanes LanesOf(const VI (&x)[kVecs]) {
  Lanes a;
  for (size_t i = 0; i < kVecs; ++i) a.v[i] = x[i].raw;
  return a;
}

#if HWY_TARGET == HWY_AVX2

// Signed bytes 0 and 2 of each lane, then 1 and 3, as two s16.
HWY_INLINE Lanes EvenBytes(Lanes a) {
  for (size_t i = 0; i < kVecs; ++i) a.v[i] = _mm256_srai_epi16(_mm256_slli_epi16(a.v[i], 8), 8);
  return a;
}
HWY_INLINE Lanes OddBytes(Lanes a) {
  for (size_t i = 0; i < kVecs; ++i) a.v[i] = _mm256_srai_epi16(a.v[i], 8);
  return a;
}
// Two s16 a lane: products of the bytes w (u8) and the four at x (s8), summed in pairs.
// first: acc = p, not acc + p.
HWY_INLINE void AddByteProducts(Lanes& acc, const Lanes& w, const uint8_t* x, bool first) {
  const Lanes four = BroadcastLane(x);
  for (size_t i = 0; i < kVecs; ++i) {
    const RawInt p = _mm256_maddubs_epi16(w.v[i], four.v[i]);
    acc.v[i] = first ? p : _mm256_add_epi16(acc.v[i], p);
    QUIRE_KEEP(acc.v[i]);
  }
}
// One s32 a lane: products of two s16, summed.
HWY_INLINE void AddWordProducts(Lanes& acc, const Lanes& w, const uint8_t* x, bool first) {
  const Lanes two = BroadcastLane(x);
  for (size_t i = 0; i < kVecs; ++i) {
    const RawInt p = _mm256_madd_epi16(w.v[i], two.v[i]);
    acc.v[i] = first ? p : _mm256_add_epi32(acc.v[i], p);
    QUIRE_KEEP(acc.v[i]);
  }
}

#else

// One s32 a lane: acc += products of the bytes w (u8) and the four at x (s8).
HWY_INLINE void AddByteDots(Lanes& acc, const Lanes& w, const uint8_t* x) {
  asm("vpdpbusd %2%{1to16%}, %1, %0"
      : "+v"(acc.v[0])
      : "v"(w.v[0]), "m"(*reinterpret_cast<const int32_t __attribute__((may_alias))*>(x)));
}

#endif

#undef QUIRE_INT
#undef QUIRE_INT_BITS

#else  // portable; the products stay calls, or unrolled tiles would take minutes to compile

struct Lanes {
  int32_t x[16];
};

HWY_INLINE int ByteOf(int32_t x, int i) {
  return static_cast<uint8_t>(static_cast<uint32_t>(x) >> 8 * i);
}
HWY_INLINE int WordOf(int32_t x, int i) {
  return static_cast<int16_t>(static_cast<uint32_t>(x) >> 16 * i);
}

template <class F>
HWY_INLINE Lanes MapLanes(Lanes a, F f) {
  for (int32_t& x : a.x) x = static_cast<int32_t>(f(static_cast<uint32_t>(x)));
  return a;
}
template <class F>
HWY_INLINE Lanes MapLanes(Lanes a, const Lanes& b, F f) {
  for (size_t i = 0; i < 16; ++i)
    a.x[i] = static_cast<int32_t>(f(static_cast<uint32_t>(a.x[i]), static_cast<uint32_t>(b.x[i])));
  return a;
}

HWY_INLINE Lanes AddLanes(Lanes a, const Lanes& b) {
  return MapLanes(a, b, [](uint32_t x, uint32_t y) { return x + y; });
}
HWY_INLINE Lanes SubLanes(Lanes a, const Lanes& b) {
  return MapLanes(a, b, [](uint32_t x, uint32_t y) { return x - y; });
}
HWY_INLINE Lanes MulLanes(Lanes a, const Lanes& b) {
  return MapLanes(a, b, [](uint32_t x, uint32_t y) { return x * y; });
}
HWY_INLINE Lanes OrLanes(Lanes a, const Lanes& b) {
  return MapLanes(a, b, [](uint32_t x, uint32_t y) { return x | y; });
}
inline HWY_NOINLINE Lanes WordDots(Lanes a, const Lanes& b) {
  for (size_t i = 0; i < 16; ++i)
    a.x[i] = WordOf(a.x[i], 0) * WordOf(b.x[i], 0) + WordOf(a.x[i], 1) * WordOf(b.x[i], 1);
  return a;
}
HWY_INLINE Lanes LoadLanes(const void* p) {
  Lanes a;
  memcpy(a.x, p, 64);
  return a;
}
HWY_INLINE void StoreLanes(const Lanes& a, void* p) { memcpy(p, a.x, 64); }
HWY_INLINE Lanes SetLanes(int32_t x) {
  Lanes a;
  for (int32_t& lane : a.x) lane = x;
  return a;
}
HWY_INLINE Lanes BroadcastLane(const void* p) {
  int32_t x;
  memcpy(&x, p, 4);
  return SetLanes(x);
}
HWY_INLINE Lanes AndBytes(Lanes a, int mask) {
  return MapLanes(a, [=](uint32_t x) { return x & static_cast<uint32_t>(mask) * 0x01010101u; });
}
HWY_INLINE Lanes XorBytes(Lanes a, int mask) {
  return MapLanes(a, [=](uint32_t x) { return x ^ static_cast<uint32_t>(mask) * 0x01010101u; });
}
HWY_INLINE Lanes ShiftLeftLanes(Lanes a, int bits) {
  return MapLanes(a, [=](uint32_t x) { return x << bits; });
}
HWY_INLINE Lanes ShiftRightLanes(Lanes a, int bits) {
  return MapLanes(a, [=](uint32_t x) { return x >> bits; });
}
HWY_INLINE Lanes ShiftRightSigned(Lanes a, int bits) {
  return MapLanes(a, [=](uint32_t x) { return static_cast<int32_t>(x) >> bits; });
}
inline HWY_NOINLINE Lanes LookUp(const uint8_t* table, Lanes bytes) {
  uint8_t b[64];
  memcpy(b, bytes.x, 64);
  for (uint8_t& byte : b) byte = table[byte & 15];
  return LoadLanes(b);
}
HWY_INLINE F32x16 LanesToFloat(const Lanes& a) {
  alignas(64) float x[16];
  for (size_t i = 0; i < 16; ++i) x[i] = static_cast<float>(a.x[i]);
  return Load16(x);
}
HWY_INLINE Lanes LanesOf(const VI (&x)[kVecs]) {
  Lanes a;
  for (size_t i = 0; i < kVecs; ++i) hn::Store(x[i], DI(), a.x + i * kVecLanes);
  return a;
}
inline HWY_NOINLINE void AddByteDots(Lanes& acc, const Lanes& w, const uint8_t* x) {
  for (size_t i = 0; i < 16; ++i)
    for (int j = 0; j < 4; ++j) acc.x[i] += ByteOf(w.x[i], j) * static_cast<int8_t>(x[j]);
}

#endif

HWY_INLINE Lanes LowNibbles(Lanes a) { return AndBytes(a, 15); }
HWY_INLINE Lanes HighNibbles(Lanes a) { return AndBytes(ShiftRightLanes(a, 4), 15); }

// Bits of a plane moved to where a code wants them: left by `bits`, or right if it is negative.
HWY_INLINE Lanes MovedBits(Lanes a, int bits, int mask) {
  return AndBytes(bits >= 0 ? ShiftLeftLanes(a, bits) : ShiftRightLanes(a, -bits), mask);
}

// Sixteen bytes as s32 lanes.
template <class Byte>
HWY_INLINE Lanes BytesToLanes(const uint8_t* p) {
  const hn::Rebind<Byte, DI> d8;
  VI x[kVecs];
  for (size_t i = 0; i < kVecs; ++i)
    x[i] = hn::PromoteTo(DI(), hn::LoadU(d8, reinterpret_cast<const Byte*>(p) + i * kVecLanes));
  return LanesOf(x);
}

// Two s32 of s16 range side by side in a lane: a low, b high. And apart again.
HWY_INLINE Lanes PairOf(Lanes a, Lanes b) {
  return OrLanes(ShiftRightLanes(ShiftLeftLanes(a, 16), 16), ShiftLeftLanes(b, 16));
}
HWY_INLINE Lanes PartOfPair(Lanes pair, int part) {
  return ShiftRightSigned(part == 0 ? ShiftLeftLanes(pair, 16) : pair, 16);
}

}  // namespace HWY_NAMESPACE
}  // namespace quire
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
