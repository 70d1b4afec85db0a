#include "base/test_cost.h"

#include <cstddef>
#include <cstdint>

namespace quire {
namespace {

#ifndef QUIRE_SANITIZED

// Reads `num_words` of memory; volatile, or the compiler would know the sum.
void Read(size_t num_words) {
  static const volatile uint64_t word = 1;
  uint64_t sum = 0;
  for (size_t i = 0; i < num_words; ++i) sum += word;
  EXPECT_EQ(sum, num_words);
}

TEST(TestCost, SeesFourTimesTheWork) {
  const Work cheap = [] { Read(100'000); }, dear = [] { Read(400'000); };
  EXPECT_FALSE(CostsAtMost({.factor = 2.5}, cheap, dear));
  EXPECT_TRUE(CostsAtMost({.factor = 6}, cheap, dear));
  EXPECT_TRUE(CostsAtMost({.factor = 2.5, .slack_seconds = 1}, cheap, dear));
}

// A neighbour that is there for the first rounds, then gone.
TEST(TestCost, OutlastsANeighbour) {
  int num_runs = 0;
  const auto slow_at_first = [&] { Read(++num_runs <= 5 ? 1'000'000 : 100'000); };
  EXPECT_TRUE(CostsAtMost(
      {.factor = 2}, [] { Read(100'000); }, slow_at_first));
  EXPECT_GT(num_runs, 5);
}

TEST(TestCost, TheLeastRunCounts) {
  int num_runs = 0;
  const double once = LeastSeconds(5, [] { Read(100'000); });
  EXPECT_LT(LeastSeconds(5, [&] { Read(++num_runs == 3 ? 10'000 : 1'000'000); }), once);
  EXPECT_EQ(num_runs, 5);
}

#else

TEST(TestCost, BothSidesRunOnceUnderASanitizer) {
  int num_cheap = 0, num_dear = 0;
  EXPECT_TRUE(CostsAtMost(
      {.factor = 0}, [&] { ++num_cheap; }, [&] { ++num_dear; }));
  EXPECT_EQ(num_cheap, 1);
  EXPECT_EQ(num_dear, 1);
}

#endif

}  // namespace
}  // namespace quire
