#include "linear/ceilings.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "linear/ceilings.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include "linear/byte_products-inl.h"

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

// Products as the kernels make them. Targets with byte dots have no other path for words.
template <bool kWords>
HWY_INLINE void AddProducts(Lanes& sum, const Lanes& w, const uint8_t* x) {
#if HWY_TARGET == HWY_AVX2
  if (kWords)
    AddWordProducts(sum, w, x, false);
  else
    AddByteProducts(sum, w, x, false);
#else
  AddByteDots(sum, w, x);
#endif
}

template <bool kWords>
void ProductLoop(int64_t rounds) {
  alignas(64) uint8_t bytes[64] = {1, 2, 3};
  const uint8_t ones[4] = {1, 1, 1, 1};
  Lanes w = LoadLanes(bytes);
  Lanes sum[kSums];
  HWY_UNROLL(12)
  for (int i = 0; i < kSums; ++i) sum[i] = w;
  for (int64_t round = 0; round < rounds; ++round) {
    HWY_UNROLL(12)
    for (int i = 0; i < kSums; ++i) {
#if HWY_TARGET != HWY_SCALAR
      for (size_t j = 0; j < kVecs; ++j) QUIRE_KEEP(w.v[j]);  // else one product serves all sums
#endif
      AddProducts<kWords>(sum[i], w, ones);
    }
  }
  HWY_UNROLL(12)  // a variable index would keep the sums in memory
  for (int i = 0; i < kSums; ++i) StoreLanes(sum[i], bytes), Use(bytes);
}

inline constexpr Ceilings kCeilings = {.read = Read,
                                       .fma = FmaLoop,
                                       .byte_products = ProductLoop<false>,
                                       .word_products = ProductLoop<true>,
                                       .fma_per_round = kSums * 16,
                                       .byte_products_per_round = kSums * 64,
                                       .word_products_per_round = kSums * (kHasByteDots ? 64 : 32)};

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
