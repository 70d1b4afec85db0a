#include "cache/page_residency.h"

#include "cache/cache_report.h"
#include "cache/test_cache.h"

namespace quire {
namespace {

// How many values are in the bucket that `seconds` belongs to.
uint64_t CountNear(const Histogram<kResidencyBounds>& times, double seconds) {
  Histogram<kResidencyBounds> one;
  one.Add(seconds);
  for (size_t i = 0; i < one.counts.size(); ++i)
    if (one.counts[i] == 1) return times.counts[i];
  return 0;
}

TEST(PageResidency, TimesAreThoseBetweenTheCalls) {
  PageResidency residency(4);
  residency.SetNow(1'000);
  residency.Add(3);
  residency.SetNow(1'004);
  residency.Use(3);
  residency.SetNow(3'004);
  residency.Use(3);
  residency.SetNow(33'004);
  residency.Evict(3);
  const ResidencyTimes& times = residency.times();
  EXPECT_EQ(times.reuse_gaps.num_values(), 2u);
  EXPECT_EQ(CountNear(times.reuse_gaps, 0.004), 1u);
  EXPECT_EQ(CountNear(times.reuse_gaps, 2), 1u);
  EXPECT_NEAR(times.reuse_gaps.sum, 2.004, 1e-9);
  EXPECT_EQ(times.lifetimes.num_values(), 1u);
  EXPECT_NEAR(times.lifetimes.sum, 32.004, 1e-9);
  EXPECT_EQ(times.idle_times.num_values(), 1u);
  EXPECT_NEAR(times.idle_times.sum, 30, 1e-9);
}

TEST(PageResidency, TheClockMayWrap) {
  PageResidency residency(1);
  residency.SetNow((uint64_t{1} << 32) - 500);
  residency.Add(0);
  residency.SetNow((uint64_t{1} << 32) + 500);
  residency.Use(0);
  EXPECT_NEAR(residency.times().reuse_gaps.sum, 1, 1e-9);
}

// Of a cache: a page is made when it is full, used by each request that matches it, and gone when
// another needs its room.
TEST(PageResidency, ACacheTellsOfItsPages) {
  TestCache c({Full()}, 4);
  c.cache->SetNow(1'000);
  c.Run(Text(32));  // two pages
  const auto times = [&] { return MakeCacheReport(*c.cache).residency; };
  EXPECT_EQ(times().reuse_gaps.num_values(), 0u);
  c.cache->SetNow(6'000);
  c.Run(Text(33));  // its match goes through both
  EXPECT_EQ(times().reuse_gaps.num_values(), 2u);
  EXPECT_NEAR(times().reuse_gaps.sum, 10, 1e-9);
  EXPECT_EQ(times().lifetimes.num_values(), 0u);
  c.cache->SetNow(26'000);
  c.Run(Text(64, 1));  // takes all four
  EXPECT_EQ(CountNear(times().lifetimes, 25), 2u);
  EXPECT_EQ(CountNear(times().idle_times, 20), 3u) << "and the tail of the second, made then";
  // What is dropped was not evicted.
  const uint64_t num_evicted = times().lifetimes.num_values();
  c.cache->DropAll();
  EXPECT_EQ(times().lifetimes.num_values(), num_evicted);
}

// The clock of pins and that of uses are one, and it does not go back.
TEST(PageResidency, ExpiringPinsTellsTheTimeToo) {
  TestCache c({Full()}, 4);
  c.Run(Text(16));
  c.cache->ExpirePins(7);
  c.Run(Text(17));
  c.cache->SetNow(6'000);
  c.cache->ExpirePins(5);
  c.Run(Text(17));
  const ResidencyTimes times = MakeCacheReport(*c.cache).residency;
  EXPECT_EQ(times.reuse_gaps.num_values(), 3u) << "the page twice, its tail once";
  EXPECT_NEAR(times.reuse_gaps.sum, 7, 1e-9);
}

}  // namespace
}  // namespace quire
