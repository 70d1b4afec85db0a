// LoadState: how far the model's loading is, written by the thread that loads, told by /health.
//
// Threading: any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

#include "base/seconds.h"

namespace quire {

class LoadState {
 public:
  void SetBytes(uint64_t done, uint64_t total) {
    total_.store(total, std::memory_order_relaxed);
    done_.store(done, std::memory_order_relaxed);
  }
  int percent() const {
    const uint64_t total = total_.load(std::memory_order_relaxed);
    return total == 0 ? 0 : static_cast<int>(100 * done_.load(std::memory_order_relaxed) / total);
  }
  uint64_t done_bytes() const { return done_.load(std::memory_order_relaxed); }
  uint64_t total_bytes() const { return total_.load(std::memory_order_relaxed); }
  // Until it is done, at the speed so far; -1: not known yet.
  double rest_seconds() const {
    const auto done = static_cast<double>(done_bytes()), total = static_cast<double>(total_bytes());
    return done == 0 ? -1 : SecondsSince(start_) * (total - done) / done;
  }

 private:
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::atomic<uint64_t> done_{0}, total_{0};
};

}  // namespace quire
