#include "base/units.h"

#include <gtest/gtest.h>

namespace quire {
namespace {

using std::chrono::milliseconds;

TEST(Units, SizesNeedTheirUnit) {
  EXPECT_EQ(ParseBytes("512MiB").value(), uint64_t{512} << 20);
  EXPECT_EQ(ParseBytes("4 GiB").value(), uint64_t{4} << 30);
  EXPECT_EQ(ParseBytes("8G").value(), uint64_t{8} << 30);
  EXPECT_EQ(ParseBytes("1.5GB").value(), 1'500'000'000u);
  EXPECT_EQ(ParseBytes("4096B").value(), 4096u);
  for (const char* text : {"", "8", "8000000000", "0GiB", "-1GiB", "8gib", "GiB", "8GiBx", "nanGiB",
                           "infGiB", "1e300GiB", "1e-9B", "8 0GiB", "0x8GiB"})
    EXPECT_FALSE(ParseBytes(text).ok()) << text;
}

TEST(Units, TimesNeedTheirUnitUnlessTheyAre0) {
  EXPECT_EQ(ParseDuration("500ms").value(), milliseconds(500));
  EXPECT_EQ(ParseDuration("10s").value(), milliseconds(10'000));
  EXPECT_EQ(ParseDuration("0.5s").value(), milliseconds(500));
  EXPECT_EQ(ParseDuration("2m").value(), milliseconds(120'000));
  EXPECT_EQ(ParseDuration("1h").value(), milliseconds(3'600'000));
  EXPECT_EQ(ParseDuration("0").value(), milliseconds(0));
  for (const char* text : {"", "10", "-1s", "s", "1d", "10sec", "1e300s", "nans"})
    EXPECT_FALSE(ParseDuration(text).ok()) << text;
}

TEST(Units, CountsAreWholeNumbers) {
  EXPECT_EQ(ParseCount("4096").value(), 4096u);
  EXPECT_EQ(ParseCount("25k").value(), 25'000u);
  EXPECT_EQ(ParseCount("2.3k").value(), 2300u);
  EXPECT_EQ(ParseCount("1.5M").value(), 1'500'000u);
  EXPECT_EQ(ParseCount("70.6B").value(), 70'600'000'000u);
  EXPECT_EQ(ParseCount("1T").value(), 1'000'000'000'000u);
  EXPECT_EQ(ParseCount("0").value(), 0u);
  for (const char* text : {"", "-1", "1.5", "k", "25kk", "1e30", "nan"})
    EXPECT_FALSE(ParseCount(text).ok()) << text;
}

}  // namespace
}  // namespace quire
