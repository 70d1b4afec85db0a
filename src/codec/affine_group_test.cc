#include "codec/affine_group.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace quire {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Encoded {
  Encoded(const std::vector<float>& values, uint32_t bits) : codes(values.size(), 99) {
    group = EncodeAffineGroup(values, bits, codes.data());
    for (const uint8_t code : codes) decoded.push_back(group.Decode(code));
  }
  AffineGroup group;
  std::vector<uint8_t> codes;
  std::vector<float> decoded;
};
using Codes = std::vector<uint8_t>;
using Floats = std::vector<float>;

TEST(AffineGroup, TiesGoToTheEvenCode) {
  const Encoded two({0.5f, -1, 2, 0}, 2);
  EXPECT_EQ(HalfToFloat(two.group.scale), 1);
  EXPECT_EQ(HalfToFloat(two.group.offset), -1);
  EXPECT_EQ(two.codes, (Codes{2, 0, 3, 1}));
  EXPECT_EQ(two.decoded, (Floats{1, -1, 2, 0}));
}

TEST(AffineGroup, CodesFollowTheStoredScaleAndOffset) {
  const Encoded two({.1f, .2f, .3f, .4f}, 2);
  EXPECT_EQ(two.group.scale, 0x2E66);
  EXPECT_EQ(two.group.offset, 0x2E66);
  EXPECT_EQ(two.codes, (Codes{0, 1, 2, 3}));
  EXPECT_EQ(two.decoded,
            (Floats{0.0999755859375f, 0.199951171875f, 0.2999267578125f, 0.39990234375f}));
  const Encoded four({.1f, .2f, .3f, .4f}, 4);
  EXPECT_EQ(four.group.scale, 0x251F);
  EXPECT_EQ(four.codes, (Codes{0, 5, 10, 15}));
}

TEST(AffineGroup, EqualValuesHaveScaleZero) {
  const Encoded equal({.3f, .3f, .3f}, 2);
  EXPECT_EQ(equal.group.scale, 0);
  EXPECT_EQ(equal.group.offset, 0x34CD);
  EXPECT_EQ(equal.codes, (Codes{0, 0, 0}));
  EXPECT_EQ(equal.decoded, Floats(3, 0.300048828125f));
  EXPECT_EQ(Encoded({-0.0f, 0.0f}, 4).group.offset, 0);
  EXPECT_EQ(Encoded({0.0f, -0.0f}, 4).group.offset, 0);
  EXPECT_EQ(Encoded({-0.0f}, 4).group.offset, 0);
}

TEST(AffineGroup, AFarOffsetIsNoTrouble) {
  const Encoded far({1000, 1000.5f, 1001, 1003}, 2);
  EXPECT_EQ(HalfToFloat(far.group.scale), 1);
  EXPECT_EQ(far.codes, (Codes{0, 0, 1, 3}));
}

TEST(AffineGroup, ATailOfOneIsItsOffset) {
  EXPECT_EQ(Encoded({1, 2, 3, 4}, 4).codes, (Codes{0, 5, 10, 15}));
  const Encoded tail({10}, 4);
  EXPECT_EQ(tail.group.scale, 0);
  EXPECT_EQ(tail.codes, (Codes{0}));
  EXPECT_EQ(tail.decoded, (Floats{10}));
}

// At each place of groups of many sizes.
TEST(AffineGroup, NanAndInfinityMakeTheWholeGroupNan) {
  for (const float bad : {kNan, -kNan, kInfinity, -kInfinity})
    for (const size_t n : {1, 3, 16, 17, 40})
      for (size_t place = 0; place < n; ++place) {
        Floats values(n, 1.5f);
        values[n / 2] = -2;
        values[place] = bad;
        const Encoded encoded(values, 4);
        EXPECT_FALSE(encoded.group.is_finite);
        EXPECT_EQ(encoded.group.scale, 0x7E00);
        EXPECT_EQ(encoded.group.offset, 0);
        EXPECT_EQ(encoded.codes, Codes(n, 0));
        for (const float x : encoded.decoded) EXPECT_TRUE(std::isnan(x));
      }
}

TEST(AffineGroup, TheWholeRangeOfHalvesFits) {
  const Encoded encoded({-65504, 65504, 0}, 4);
  EXPECT_TRUE(encoded.group.is_finite);
  EXPECT_EQ(encoded.codes[0], 0);
  EXPECT_EQ(encoded.codes[1], 15);
}

// The rule written plainly, with the library's rounding.
TEST(AffineGroup, AgreesWithThePlainRuleAndKeepsItsBound) {
  std::mt19937 rng(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  double largest_ratio = 0;
  for (int round = 0; round < 20'000; ++round) {
    const size_t n = 1 + rng() % 300;
    const uint32_t bits = 1 + rng() % 8;
    const float size = std::pow(10.0f, 4.5f * uniform(rng)) * 1e-3f;
    const float offset = rng() % 2 == 0 ? 0 : size * 1000 * uniform(rng);
    Floats values(n);
    for (float& x : values) x = HalfToFloat(FloatToHalfSaturated(offset + size * uniform(rng)));
    const Encoded encoded(values, bits);
    const float min = *std::min_element(values.begin(), values.end());
    const float max = *std::max_element(values.begin(), values.end());
    const float last = std::exp2(static_cast<float>(bits)) - 1;
    const float s = HalfToFloat(FloatToHalfSaturated((max - min) / last));
    const float z = HalfToFloat(FloatToHalfSaturated(min));
    ASSERT_EQ(HalfToFloat(encoded.group.scale), s);
    ASSERT_EQ(HalfToFloat(encoded.group.offset), z);
    const double bound = 0.5 * s + 0x1p-11 * (std::fabs(min) + max - min) +
                         0x1p-21 * std::max(std::fabs(min), std::fabs(max)) +
                         std::exp2(static_cast<double>(bits) - 25);
    const float inverse = 1 / s;
    for (size_t i = 0; i < n; ++i) {
      const float code =
          s == 0 ? 0 : std::clamp(std::nearbyintf((values[i] - z) * inverse), 0.0f, last);
      ASSERT_EQ(static_cast<float>(encoded.codes[i]), code);
      largest_ratio = std::max(largest_ratio, std::fabs(values[i] - encoded.decoded[i]) / bound);
    }
  }
  EXPECT_LE(largest_ratio, 1);
  EXPECT_GT(largest_ratio, 0.5);  // the bound is not idle
}

}  // namespace
}  // namespace quire
