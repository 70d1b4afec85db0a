#include "base/half.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace quire {
namespace {

TEST(Half, RoundsToNearestEvenAndKeepsSubnormals) {
  EXPECT_EQ(FloatToHalf(0x1p-25f), 0x0000);
  EXPECT_EQ(FloatToHalf(1.5f * 0x1p-25f), 0x0001);
  EXPECT_EQ(FloatToHalf(1.0f + 0x1p-11f), 0x3C00);
  EXPECT_EQ(FloatToHalf(1.0f + 3 * 0x1p-11f), 0x3C02);
  EXPECT_EQ(FloatToHalf(65519.0f), 0x7BFF);
  EXPECT_EQ(FloatToHalf(65520.0f), 0x7C00);
  EXPECT_EQ(FloatToHalf(-0.0f), 0x8000);
}

TEST(Half, SaturatesFiniteValuesOnly) {
  EXPECT_EQ(FloatToHalfSaturated(65520.0f), 0x7BFF);
  EXPECT_EQ(FloatToHalfSaturated(-1e6f), 0xFBFF);
  EXPECT_EQ(FloatToHalfSaturated(std::numeric_limits<float>::infinity()), 0x7C00);
  EXPECT_TRUE(std::isnan(HalfToFloat(FloatToHalfSaturated(std::nanf("")))));
}

TEST(Half, EveryNumberSurvivesTheRoundTrip) {
  for (uint32_t half = 0; half < 65536; ++half) {
    const float value = HalfToFloat(static_cast<uint16_t>(half));
    if (std::isnan(value)) continue;
    EXPECT_EQ(FloatToHalf(value), half);
  }
}

TEST(Half, BFloat16IsTheUpperHalf) {
  EXPECT_EQ(BFloat16ToFloat(0x3F80), 1.0f);
  EXPECT_EQ(BFloat16ToFloat(0xC000), -2.0f);
}

}  // namespace
}  // namespace quire
