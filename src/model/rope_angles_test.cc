#include "model/rope_angles.h"

#include <gtest/gtest.h>

#include <cmath>

namespace quire {
namespace {

RopeShape Plain() { return {.dimension_count = 8, .freq_base = 10000}; }

TEST(RopeAngles, PlainAnglesAreThePapers) {
  const RopeAngles angles(Plain(), {});
  ASSERT_EQ(angles.num_pairs(), 4);
  float cos[4], sin[4];
  angles.Compute(100000, cos, sin);
  for (int j = 0; j < 4; ++j) {
    const double angle = 100000 * std::pow(10000.0, -2.0 * j / 8);
    EXPECT_FLOAT_EQ(cos[j], static_cast<float>(std::cos(angle)));
    EXPECT_FLOAT_EQ(sin[j], static_cast<float>(std::sin(angle)));
  }
}

TEST(RopeAngles, LinearScalingDividesPositions) {
  RopeShape rope = Plain();
  rope.scaling = RopeScaling::kLinear;
  rope.factor = 4;
  float cos[4], sin[4], cos4[4], sin4[4];
  RopeAngles(Plain(), {}).Compute(25, cos, sin);
  RopeAngles(rope, {}).Compute(100, cos4, sin4);
  for (int j = 0; j < 4; ++j) EXPECT_FLOAT_EQ(cos[j], cos4[j]);
}

TEST(RopeAngles, FactorsDivideEachFrequency) {
  const float factors[] = {1, 2, 4, 8};
  float cos[4], sin[4], plain_cos[4], plain_sin[4];
  RopeAngles(Plain(), factors).Compute(8, cos, sin);
  RopeAngles(Plain(), {}).Compute(1, plain_cos, plain_sin);
  EXPECT_FLOAT_EQ(cos[3], plain_cos[3]);
}

TEST(RopeAngles, YarnWithFactorOneIsPlain) {
  RopeShape rope = Plain();
  rope.scaling = RopeScaling::kYarn;
  rope.original_context_length = 64;
  float cos[4], sin[4], plain_cos[4], plain_sin[4];
  RopeAngles(rope, {}).Compute(77, cos, sin);
  RopeAngles(Plain(), {}).Compute(77, plain_cos, plain_sin);
  for (int j = 0; j < 4; ++j) EXPECT_FLOAT_EQ(cos[j], plain_cos[j]);
}

TEST(RopeAngles, YarnMultipliesByItsMagnitude) {
  RopeShape rope = Plain();
  rope.scaling = RopeScaling::kYarn;
  rope.factor = 4;
  rope.attn_factor = 1.25;
  rope.original_context_length = 64;
  float cos[4], sin[4];
  RopeAngles(rope, {}).Compute(0, cos, sin);
  EXPECT_FLOAT_EQ(cos[0], static_cast<float>(1.25 * (1 + 0.1 * std::log(4.0))));
}

}  // namespace
}  // namespace quire
