#include "base/ceilings.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "base/ceilings.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include "base/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quire {
namespace HWY_NAMESPACE {

// Independent sums: enough to hide the latency of an FMA, few enough for the registers.
inline constexpr int kSums = kVecs == 1 ? 12 : 6;

// The compiler must believe that the result is used.
HWY_INLINE void Use(const void* p) { asm volatile("" : : "r"(p) : "memory"); }

void Read(const std::byte* p, size_t size_bytes) {
  const auto* x = reinterpret_cast<const float*>(p);
  F32x16 sum[4] = {Zero16(), Zero16(), Zero16(), Zero16()};
  for (size_t i = 0; i + 64 <= size_bytes / 4; i += 64)
    for (size_t j = 0; j < 4; ++j) sum[j] = Max16(sum[j], Load16(x + i + 16 * j));
  alignas(64) float out[16];
  Store16(Max16(Max16(sum[0], sum[1]), Max16(sum[2], sum[3])), out);
  Use(out);
}

void FmaLoop(int64_t rounds) {
  // Values that the compiler does not know: equal sums would be merged into one.
  alignas(64) float start[kSums * 16] = {};
  Use(start);
  F32x16 sum[kSums];
  HWY_UNROLL(12)
  for (int i = 0; i < kSums; ++i) sum[i] = Load16(start + 16 * i);
  const F32x16 a = Set16(1.0f), b = Set16(0x1p-30f);
  for (int64_t round = 0; round < rounds; ++round) {
    HWY_UNROLL(12)
    for (int i = 0; i < kSums; ++i) sum[i] = Fma16(sum[i], a, b);
  }
  alignas(64) float out[16];
  HWY_UNROLL(12)
  for (int i = 1; i < kSums; ++i) sum[0] = Add16(sum[0], sum[i]);
  Store16(sum[0], out);
  Use(out);
}

// Sixteen 32-bit lanes: four bytes, two s16 or one s32.
struct Lanes {
  VI v[kVecs];
};

// sum += w * x: u8 x s8 into s16, or s16 x s16 into s32, as kernels do it on this target. The empty
// asm hides that all sums get the same product, and keeps their order.
template <bool kWords>
HWY_INLINE void AddProducts(Lanes& w, VI x, Lanes& sum) {
  for (size_t i = 0; i < kVecs; ++i) {
#if HWY_TARGET == HWY_AVX2
    asm("" : "+x"(w.v[i].raw));
    sum.v[i].raw = kWords ? _mm256_add_epi32(sum.v[i].raw, _mm256_madd_epi16(w.v[i].raw, x.raw))
                          : _mm256_add_epi16(sum.v[i].raw, _mm256_maddubs_epi16(w.v[i].raw, x.raw));
#elif HWY_TARGET == HWY_AVX3
    asm("" : "+v"(w.v[i].raw));  // byte dots serve both: four u8 x s8 into an s32
    asm("vpdpbusd %2, %1, %0" : "+v"(sum.v[i].raw) : "v"(w.v[i].raw), "v"(x.raw));
#else
    asm("" : "+r"(w.v[i].raw));
    const auto a = static_cast<uint32_t>(w.v[i].raw), b = static_cast<uint32_t>(x.raw);
    constexpr uint32_t kBits = kWords ? 16 : 8;
    uint32_t total = static_cast<uint32_t>(sum.v[i].raw);
    for (uint32_t at = 0; at < 32; at += kBits) total += (a >> at) * (b >> at);
    sum.v[i].raw = static_cast<int32_t>(total);
#endif
  }
}

template <bool kWords>
void ProductLoop(int64_t rounds) {
  const DI d;
  Lanes w, sum[kSums];
  for (size_t i = 0; i < kVecs; ++i) w.v[i] = hn::Set(d, 0x010203);
  HWY_UNROLL(12)
  for (int i = 0; i < kSums; ++i) sum[i] = w;
  const VI x = hn::Set(d, 0x01010101);
  for (int64_t round = 0; round < rounds; ++round) {
    HWY_UNROLL(12)
    for (int i = 0; i < kSums; ++i) AddProducts<kWords>(w, x, sum[i]);
  }
  alignas(64) int32_t out[16];
  HWY_UNROLL(12)  // a variable index would keep the sums in memory
  for (int i = 0; i < kSums; ++i) {
    for (size_t j = 0; j < kVecs; ++j) hn::StoreU(sum[i].v[j], d, out + j * kVecLanes);
    Use(out);
  }
}

inline constexpr Ceilings kCeilings = {
    .read = Read,
    .fma = FmaLoop,
    .byte_products = ProductLoop<false>,
    .word_products = ProductLoop<true>,
    .fma_per_round = kSums * 16,
    .byte_products_per_round = kSums * 64,
    .word_products_per_round = kSums * (HWY_TARGET == HWY_AVX3 ? 64 : 32)};

}  // namespace HWY_NAMESPACE
}  // namespace quire
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quire {

const Ceilings& GetCeilings(InstructionSet set) {
  switch (set) {
    case InstructionSet::kPortable:
      return N_SCALAR::kCeilings;
    case InstructionSet::kAvx2:
      return N_AVX2::kCeilings;
    case InstructionSet::kAvx512:
      return N_AVX3::kCeilings;
  }
  return N_SCALAR::kCeilings;
}

}  // namespace quire
#endif  // HWY_ONCE
