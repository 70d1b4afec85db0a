// The operations of vector-inl.h on every instruction set of this machine: against plain code, and
// bit for bit against each other.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "base/vector_test.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include "base/vector-inl.h"

#ifndef QUIRE_VECTOR_TEST_TABLE_
#define QUIRE_VECTOR_TEST_TABLE_
namespace quire {
struct VectorOps {
  void (*exp2)(const float*, float*);               // 16 lanes
  void (*fma)(const float*, const float*, float*);  // 16 lanes, into the third
  float (*sum)(const float*);
  float (*max)(const float*);
  void (*from_half)(const uint16_t*, float*);
  void (*to_half)(const float*, uint16_t*);
};
}  // namespace quire
#endif

HWY_BEFORE_NAMESPACE();
namespace quire {
namespace HWY_NAMESPACE {
VectorOps Ops() {
  return {.exp2 = [](const float* x, float* y) { Store16(Exp2x16(Load16(x)), y); },
          .fma = [](const float* a, const float* b,
                    float* c) { Store16(Fma16(Load16(a), Load16(b), Load16(c)), c); },
          .sum = [](const float* x) { return SumLanes16(Load16(x)); },
          .max = [](const float* x) { return MaxLanes16(Load16(x)); },
          .from_half = [](const uint16_t* x, float* y) { Store16(LoadHalf16(x), y); },
          .to_half = [](const float* x, uint16_t* y) { StoreHalf16Saturated(Load16(x), y); }};
}
}  // namespace HWY_NAMESPACE
}  // namespace quire
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "base/instruction_set.h"

namespace quire {
namespace {

VectorOps OpsOf(InstructionSet set) {
  switch (set) {
    case InstructionSet::kPortable:
      return N_SCALAR::Ops();
    case InstructionSet::kAvx2:
      return N_AVX2::Ops();
    case InstructionSet::kAvx512:
      return N_AVX3::Ops();
  }
  return N_SCALAR::Ops();
}

std::vector<float> RandomLanes(std::mt19937& rng, float low, float high) {
  std::uniform_real_distribution<float> uniform(low, high);
  std::vector<float> x(16);
  for (float& y : x) y = uniform(rng);
  return x;
}

TEST(Vector, Exp2IsWithin3e7AndExactAtZero) {
  std::mt19937 rng(1);
  for (InstructionSet set : AvailableInstructionSets()) {
    const VectorOps ops = OpsOf(set);
    for (int round = 0; round < 2000; ++round) {
      auto x = RandomLanes(rng, -126.0f, 10.0f);
      x[3] = 0.0f;
      std::vector<float> y(16);
      ops.exp2(x.data(), y.data());
      for (int i = 0; i < 16; ++i)
        EXPECT_NEAR(y[i] / std::exp2(static_cast<double>(x[i])), 1.0, 3e-7) << x[i];
      EXPECT_EQ(y[3], 1.0f);
    }
  }
}

TEST(Vector, EveryInstructionSetGivesTheSameBits) {
  std::mt19937 rng(2);
  const VectorOps plain = OpsOf(InstructionSet::kPortable);
  for (InstructionSet set : AvailableInstructionSets()) {
    const VectorOps ops = OpsOf(set);
    for (int round = 0; round < 2000; ++round) {
      const auto a = RandomLanes(rng, -3.0f, 3.0f), b = RandomLanes(rng, -1e-3f, 1e3f);
      std::vector<float> c = RandomLanes(rng, -2.0f, 2.0f), e = c, x(16), y(16);
      ops.fma(a.data(), b.data(), c.data());
      plain.fma(a.data(), b.data(), e.data());
      EXPECT_EQ(c, e);
      EXPECT_EQ(ops.sum(c.data()), plain.sum(c.data()));
      EXPECT_EQ(ops.max(c.data()), plain.max(c.data()));
      ops.exp2(a.data(), x.data());
      plain.exp2(a.data(), y.data());
      EXPECT_EQ(x, y);
    }
  }
}

TEST(Vector, SumIsSum16OfTheFormatsDocument) {
  std::vector<float> x(16);
  std::mt19937 rng(3);
  for (float& y : x) y = std::uniform_real_distribution<float>(-1, 1)(rng);
  std::vector<float> s = x;
  for (int half : {8, 4, 2, 1})
    for (int i = 0; i < half; ++i) s[i] = s[i] + s[i + half];
  for (InstructionSet set : AvailableInstructionSets()) EXPECT_EQ(OpsOf(set).sum(x.data()), s[0]);
}

TEST(Vector, HalvesConvertAsTheBitwiseCodeDoes) {
  for (InstructionSet set : AvailableInstructionSets()) {
    const VectorOps ops = OpsOf(set);
    for (uint32_t first = 0; first < 65536; first += 16) {
      uint16_t halves[16], back[16];
      float values[16];
      for (uint32_t i = 0; i < 16; ++i) halves[i] = static_cast<uint16_t>(first + i);
      ops.from_half(halves, values);
      ops.to_half(values, back);
      for (uint32_t i = 0; i < 16; ++i) {
        EXPECT_EQ(std::bit_cast<uint32_t>(values[i]),
                  std::bit_cast<uint32_t>(HalfToFloat(halves[i])));
        EXPECT_EQ(back[i], FloatToHalfSaturated(values[i]));
      }
    }
    std::mt19937 rng(4);
    for (int round = 0; round < 20000; ++round) {
      float values[16];
      uint16_t halves[16];
      for (float& value : values) value = std::bit_cast<float>(static_cast<uint32_t>(rng()));
      ops.to_half(values, halves);
      for (int i = 0; i < 16; ++i) EXPECT_EQ(halves[i], FloatToHalfSaturated(values[i]));
    }
  }
}

}  // namespace
}  // namespace quire
#endif  // HWY_ONCE
