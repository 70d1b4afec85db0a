// PageResidency: how long the pages of the prefix tree stay, how long they lie unused before they
// are evicted, and how long a page waits from one use to the next. Idle times that are short beside
// the gaps say that pages go before they are needed again: a larger cache would be used.
//
// A page here is a node of the tree: the pages of all layer groups for the same tokens. Its uses
// are its making and each request whose match goes through it. Every page counts, none is sampled;
// a gap counts when it ends, the other two when the page is evicted for room (not when it is
// dropped).
//
// Threading: not thread-safe; owned by the engine thread. No call allocates.
// Times: of SetNow; kept modulo 2^32 ms, so of pages that lie longer than 49 days they are wrong.
#pragma once

#include <array>
#include <cstdint>

#include "base/histogram.h"
#include "base/lazy_array.h"
#include "cache/eviction_policy.h"

namespace quire {

inline constexpr std::array kResidencyBounds = {0.001, 0.002, 0.005, 0.01,  0.02,  0.05,   0.1,
                                                0.2,   0.5,   1.0,   2.0,   5.0,   10.0,   20.0,
                                                30.0,  60.0,  120.0, 300.0, 600.0, 1200.0, 1800.0};

// In seconds.
struct ResidencyTimes {
  Histogram<kResidencyBounds> lifetimes;   // from a page's making to its eviction
  Histogram<kResidencyBounds> idle_times;  // from its last use to its eviction
  Histogram<kResidencyBounds> reuse_gaps;  // between two uses that follow each other
};

class PageResidency {
 public:
  explicit PageResidency(uint32_t max_nodes) : pages_(max_nodes) {}

  void SetNow(uint64_t now_ms) { now_ms_ = static_cast<uint32_t>(now_ms); }

  void Add(NodeId id) { pages_[id] = {now_ms_, now_ms_}; }
  void Use(NodeId id) {
    times_.reuse_gaps.Add(SecondsSince(pages_[id].used_ms));
    pages_[id].used_ms = now_ms_;
  }
  void Evict(NodeId id) {
    times_.lifetimes.Add(SecondsSince(pages_[id].made_ms));
    times_.idle_times.Add(SecondsSince(pages_[id].used_ms));
  }

  const ResidencyTimes& times() const { return times_; }

 private:
  struct Page {
    uint32_t made_ms, used_ms;
  };
  double SecondsSince(uint32_t ms) const { return static_cast<double>(now_ms_ - ms) / 1000; }

  uint32_t now_ms_ = 0;
  LazyArray<Page> pages_;  // [NodeId]
  ResidencyTimes times_;
};

}  // namespace quire
