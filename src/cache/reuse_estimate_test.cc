#include "cache/reuse_estimate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace quire {
namespace {

constexpr int kNumBuckets = ReuseEstimate::kNumBuckets;
constexpr int kLast = kNumBuckets - 1;

void Count(ReuseEstimate& estimate, int page_class, int bucket, int hits, int survivals) {
  for (int i = 0; i < hits; ++i) estimate.CountHit(page_class, bucket);
  for (int i = 0; i < survivals; ++i) estimate.CountSurvival(page_class, bucket);
}

TEST(ReuseEstimate, BucketsAreHalfOctavesWithoutGaps) {
  EXPECT_EQ(ReuseEstimate::BucketStart(0), 0u);
  EXPECT_EQ(ReuseEstimate::BucketStart(1), 8u);
  EXPECT_EQ(ReuseEstimate::BucketStart(2), 11u);
  EXPECT_EQ(ReuseEstimate::BucketStart(3), 16u);
  EXPECT_EQ(ReuseEstimate::BucketStart(kLast), 4u << 20);
  for (int bucket = 0; bucket < kLast; ++bucket)
    EXPECT_LT(ReuseEstimate::BucketStart(bucket), ReuseEstimate::BucketStart(bucket + 1));
  for (int bucket = 0; bucket <= kLast; ++bucket) {
    EXPECT_EQ(ReuseEstimate::BucketOf(ReuseEstimate::BucketStart(bucket)), bucket);
    if (bucket > 0) {
      EXPECT_EQ(ReuseEstimate::BucketOf(ReuseEstimate::BucketStart(bucket) - 1), bucket - 1);
    }
  }
  EXPECT_EQ(ReuseEstimate::BucketOf(UINT32_MAX), kLast);
}

TEST(ReuseEstimate, WithoutEvidenceOlderPagesAndPagesNeverHitAreWorthLess) {
  const ReuseEstimate estimate(512);
  for (int bucket = 2; bucket < kLast; ++bucket)  // bucket 0 is wider than the next
    for (int page_class = 0; page_class < ReuseEstimate::kNumClasses; ++page_class)
      EXPECT_LT(estimate.Worth(page_class, bucket), estimate.Worth(page_class, bucket - 1));
  for (int bucket = 0; bucket < kLast; ++bucket)
    EXPECT_LT(estimate.Worth(0, bucket), estimate.Worth(1, bucket));
  EXPECT_EQ(estimate.Worth(0, kLast), 0);
  EXPECT_EQ(estimate.Worth(2, kLast), 0);
}

TEST(ReuseEstimate, APageWhoseHitComesLateIsWorthMoreJustBeforeIt) {
  ReuseEstimate estimate(512);
  for (int bucket = 0; bucket < 12; ++bucket) Count(estimate, 0, bucket, 0, 20000);
  Count(estimate, 0, 12, 15000, 5000);
  for (int bucket = 13; bucket < 20; ++bucket) Count(estimate, 0, bucket, 0, 5000);
  estimate.Update();
  for (int bucket = 1; bucket <= 12; ++bucket)
    EXPECT_GT(estimate.Worth(0, bucket), estimate.Worth(0, bucket - 1));
  EXPECT_LT(estimate.Worth(0, 13), estimate.Worth(0, 0) / 2);
}

// By hand: half of the pages are hit in bucket 0, none later.
TEST(ReuseEstimate, WorthIsHitsForEachPageTouched) {
  ReuseEstimate estimate(512);
  Count(estimate, 0, 0, 20000, 20000);
  for (int bucket = 1; bucket < kLast; ++bucket) Count(estimate, 0, bucket, 0, 60000);
  estimate.Update();
  const double weight = ReuseEstimate::kPriorWeight / 512;
  const double chance = (20000 + weight / 32) / (40000 + weight);
  EXPECT_NEAR(estimate.Worth(0, 0), chance / (8 * (1 - chance / 2)), 1e-12);
}

TEST(ReuseEstimate, AFloodIsKnownAtAgesItHasNotReached) {
  ReuseEstimate flood(512);
  const ReuseEstimate nothing(512);
  for (int bucket = 0; bucket < 8; ++bucket) Count(flood, 0, bucket, 0, 50000);
  flood.Update();
  EXPECT_LT(flood.Worth(0, 0), nothing.Worth(0, 0) / 8);
  EXPECT_LT(flood.Worth(0, 8), nothing.Worth(0, 8) * 0.8);
}

TEST(ReuseEstimate, EvidenceIsBoundedSoThatAChangeShows) {
  ReuseEstimate estimate(512);
  for (int i = 0; i < 100; ++i) {  // a long time without hits
    Count(estimate, 0, 0, 0, 20000);
    estimate.Update();
  }
  const double before = estimate.Worth(0, 0);
  Count(estimate, 0, 0, 60000, 0);  // then as many hits as the bound
  estimate.Update();
  EXPECT_GT(estimate.Worth(0, 0), 20 * before);
}

}  // namespace
}  // namespace quire
