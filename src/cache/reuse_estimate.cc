#include "cache/reuse_estimate.h"

#include <algorithm>

namespace quire {
namespace {

constexpr uint32_t kFirstEnd = 8;  // pages: where bucket 0 ends

}  // namespace

uint32_t ReuseEstimate::BucketStart(int bucket) {
  if (bucket == 0) return 0;
  const int half_octaves = bucket - 1;
  const uint32_t start = kFirstEnd << (half_octaves / 2);
  return half_octaves % 2 == 0 ? start : static_cast<uint32_t>(start * 1.4142135623730951);
}

int ReuseEstimate::BucketOf(uint32_t age) {
  int bucket = 0;
  while (bucket < kNumBuckets - 1 && age >= BucketStart(bucket + 1)) ++bucket;
  return bucket;
}

void ReuseEstimate::Update() {
  for (int page_class = 0; page_class < kNumClasses; ++page_class) UpdateClass(page_class);
}

void ReuseEstimate::UpdateClass(int page_class) {
  const double prior_weight = kPriorWeight / page_size_;  // pages, as the counts
  std::array<double, kNumBuckets> chance = {};
  double expected = kPrior[page_class];
  for (int bucket = 0; bucket < kNumBuckets - 1; ++bucket) {
    Count& count = counts_[page_class][bucket];
    while (count.hits + count.survivals > kMaxEvidence / page_size_) {
      count.hits /= 2;
      count.survivals /= 2;
    }
    chance[bucket] =
        (count.hits + prior_weight * expected) / (count.hits + count.survivals + prior_weight);
    expected = (chance[bucket] + kPrior[page_class]) / 2;
  }
  for (int begin = 0; begin < kNumBuckets - 1; ++begin) {
    double not_hit = 1;  // the chance to come to the bucket `end` without a hit
    double hit = 0, touched = 0, best = 0;
    for (int end = begin; end < kNumBuckets - 1; ++end) {
      const double width = BucketStart(end + 1) - BucketStart(end);
      hit += not_hit * chance[end];
      touched += not_hit * width * (1 - chance[end] / 2);  // a hit comes half way, on average
      not_hit *= 1 - chance[end];
      best = std::max(best, hit / touched);
    }
    worth_[page_class][begin] = best;
  }
}

}  // namespace quire
