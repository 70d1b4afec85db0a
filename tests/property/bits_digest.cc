// Prints one line "CASE/INSTRUCTION_SET HASH" for each computation, on every instruction set of
// this machine. tools/compare_compilers.sh compares the lines of a g++ and a clang++ build, and the
// instruction sets within each: all must agree, bit for bit.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "property/bits_digest.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include "base/vector-inl.h"
#include "property/bits_digest.h"

HWY_BEFORE_NAMESPACE();
namespace quire {
namespace HWY_NAMESPACE {

// Every operation of base/vector-inl.h on 16 lanes of each input, one after the other.
Digest DigestOfVectorOps(const float* a, const float* b, const float* c, const uint16_t* halves,
                         size_t count) {
  Digest digest;
  float lanes[16];
  uint16_t half_lanes[16];
  const auto add = [&](F32x16 x) {
    Store16(x, lanes);
    digest.AddAll(lanes);
  };
  for (size_t i = 0; i < count; i += 16) {
    const F32x16 x = Load16(a + i), y = Load16(b + i), z = Load16(c + i);
    add(Add16(x, y));
    add(Sub16(x, y));
    add(Mul16(x, y));
    add(Div16(x, y));
    add(Max16(x, y));
    add(Min16(x, y));
    add(Abs16(x));
    add(Fma16(x, y, z));
    add(Exp2x16(x));
    add(LoadHalf16(halves + i));
    digest.Add(SumLanes16(x));
    digest.Add(MaxLanes16(x));
    StoreHalf16Saturated(Mul16(x, y), half_lanes);
    digest.AddAll(half_lanes);
  }
  return digest;
}

}  // namespace HWY_NAMESPACE
}  // namespace quire
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <cinttypes>
#include <cstdio>

namespace quire {

void PrintDigest(const std::string& name, InstructionSet set, const Digest& digest) {
  std::printf("%s/%s %016" PRIx64 "\n", name.c_str(), std::string(InstructionSetName(set)).c_str(),
              digest.value());
}

namespace {

void DigestVectorOps(InstructionSet set) {
  std::mt19937 rng(1);
  constexpr size_t kCount = 16 * 4096;
  const auto a = UniformFloats(rng, kCount, -140.0f, 126.0f);
  const auto b = UniformFloats(rng, kCount, -1e3f, 1e3f);
  const auto c = UniformFloats(rng, kCount, -2.0f, 2.0f);
  std::vector<uint16_t> halves(kCount);  // every finite half, several times
  for (size_t i = 0; i < kCount; ++i) {
    halves[i] = static_cast<uint16_t>(i);
    if ((i & 0x7C00u) == 0x7C00u) halves[i] = 0;
  }
  const auto digest = set == InstructionSet::kAvx512 ? N_AVX3::DigestOfVectorOps
                      : set == InstructionSet::kAvx2 ? N_AVX2::DigestOfVectorOps
                                                     : N_SCALAR::DigestOfVectorOps;
  PrintDigest("base.vector", set, digest(a.data(), b.data(), c.data(), halves.data(), kCount));
}

}  // namespace
}  // namespace quire

int main() {
  for (quire::InstructionSet set : quire::AvailableInstructionSets()) {
    quire::DigestVectorOps(set);
    quire::DigestLinear(set);
    quire::DigestAttention(set);
    quire::DigestForward(set);
  }
}
#endif  // HWY_ONCE
