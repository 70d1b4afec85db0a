#include "base/worker_limit.h"

#include <gtest/gtest.h>

namespace quire {
namespace {

constexpr double kStep = 0.004;

TEST(WorkerLimit, QuietJobsKeepAllWorkers) {
  WorkerLimit limit(4);
  for (int i = 0; i < 1000; ++i) {
    limit.Update(0.1, kStep, i * kStep);
    ASSERT_EQ(limit.limit(), 4);
  }
}

TEST(WorkerLimit, ALossLowersItForAWhile) {
  WorkerLimit limit(2);
  limit.Update(0.5, kStep, 0);
  EXPECT_EQ(limit.limit(), 1);
  limit.Update(0.0, kStep, 0.04);
  EXPECT_EQ(limit.limit(), 1);
  limit.Update(0.0, kStep, 0.06);
  EXPECT_EQ(limit.limit(), 2);
}

TEST(WorkerLimit, NeverBelowOne) {
  WorkerLimit limit(2);
  for (int i = 0; i < 10; ++i) limit.Update(0.9, kStep, 0.001 * i);
  EXPECT_EQ(limit.limit(), 1);
}

// A neighbour that stays: tries of two workers become rare. When it goes, both are back soon.
TEST(WorkerLimit, TriesBecomeRareBesideANeighbourThatStays) {
  WorkerLimit limit(2);
  double now = 0;
  int with_two = 0, steps = 0;
  for (; now < 20; now += kStep, ++steps) {
    const bool two = limit.limit() == 2;
    with_two += two;
    limit.Update(two ? 0.5 : 0.0, kStep, now);
  }
  EXPECT_LT(with_two, steps / 100);
  EXPECT_GT(with_two, 3);
  const double left = now;
  while (limit.limit() == 1) limit.Update(0.0, kStep, now += kStep);
  EXPECT_LT(now - left, 2.1);
}

TEST(WorkerLimit, ShortJobsSayNothing) {
  WorkerLimit limit(2);
  limit.Update(0.9, 1e-5, 0);
  EXPECT_EQ(limit.limit(), 2);
}

}  // namespace
}  // namespace quire
