// How likely a page is to be asked for again, learned from what one tenant's requests do.
//
// Pages are told apart by two numbers: how often they were hit (0, 1, 2 or more: the class) and
// their age, in pages that the tenant touched since (a bucket each half octave). For each pair it
// counts the pages (below in tokens) that were hit there and those that lived through it, and takes
//   p = (hits + kPriorWeight x expected) / (hits + survivals + kPriorWeight)
// as the chance of a hit in the bucket, where the expected chance is half way between the class's
// prior and the p of the bucket before: a flood of pages that nobody asks for again is known as one
// at ages that none of them has reached yet. A page's worth is the best rate it can still give:
//   worth(b) = max over ends e >= b of  P(hit in b .. e) / E[pages touched until the hit or e]
// so a page whose hits are likely to come late (a conversation whose user is reading) is worth more
// than its next bucket tells. With the prior alone, p is equal in all buckets of a class, worth
// falls as 1 / age and the order is that of LRU, with pages seen again ahead of others.
//
// Evidence is bounded: past kMaxEvidence tokens in a bucket both counts are halved, so that the
// estimate follows a workload that changes.
//
// Constants: round numbers, chosen on synthetic_trace.jsonl and the first half of
// conversation_trace.jsonl (docs/performance.md).
#pragma once

#include <array>
#include <cstdint>

namespace quire {

class ReuseEstimate {
 public:
  static constexpr int kNumClasses = 3;   // hits: 0, 1, 2 or more
  static constexpr int kNumBuckets = 40;  // the last one: 4 Mi pages and more, worth nothing

  // By class. A page that was hit once is likelier to be hit again.
  static constexpr std::array<double, kNumClasses> kPrior = {1.0 / 32, 1.0 / 8, 1.0 / 8};
  // In tokens: the pages of a request live alike, so many small pages tell no more than a few
  // large.
  static constexpr double kPriorWeight = 1 << 19;
  static constexpr double kMaxEvidence = 1 << 25;

  // page_size: tokens in a page, at least 1.
  explicit ReuseEstimate(uint32_t page_size) : page_size_(page_size) { Update(); }

  // Bucket b holds ages BucketStart(b) <= age < BucketStart(b + 1). Requires: bucket < kNumBuckets.
  static uint32_t BucketStart(int bucket);
  static int BucketOf(uint32_t age);

  // A page was hit in this bucket; it lived through this bucket. Worth() knows after Update().
  void CountHit(int page_class, int bucket) { ++counts_[page_class][bucket].hits; }
  void CountSurvival(int page_class, int bucket) { ++counts_[page_class][bucket].survivals; }

  // Computes all worths anew: some thousand multiplications.
  void Update();

  // Expected hits for each page that the tenant touches from now on.
  double Worth(int page_class, int bucket) const { return worth_[page_class][bucket]; }

 private:
  struct Count {
    double hits = 0, survivals = 0;
  };
  void UpdateClass(int page_class);

  double page_size_;

  std::array<std::array<Count, kNumBuckets>, kNumClasses> counts_ = {};
  std::array<std::array<double, kNumBuckets>, kNumClasses> worth_ = {};
};

}  // namespace quire
