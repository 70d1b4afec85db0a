// QueueLimit: how many requests, and tokens of their prompts, wait for their first start, and how
// many may.
//
// Threading: Enter under one lock of its callers; Leave and the counts by any thread. So the limit
// is exact: between two Enters the counts can only fall.
#pragma once

#include <atomic>
#include <cstdint>

namespace quire {

class QueueLimit {
 public:
  // 0: no limit.
  QueueLimit(uint32_t most_requests, uint64_t most_tokens)
      : most_requests_(most_requests), most_tokens_(most_tokens) {}

  enum class Verdict { kEntered, kTooManyRequests, kTooManyTokens };
  // If nobody waits, one request of any length may.
  Verdict Enter(uint64_t num_tokens) {
    const uint32_t requests = num_requests();
    if (most_requests_ != 0 && requests >= most_requests_) {
      num_refused_for_requests_.fetch_add(1, std::memory_order_relaxed);
      return Verdict::kTooManyRequests;
    }
    if (most_tokens_ != 0 && requests > 0 && this->num_tokens() + num_tokens > most_tokens_) {
      num_refused_for_tokens_.fetch_add(1, std::memory_order_relaxed);
      return Verdict::kTooManyTokens;
    }
    num_requests_.fetch_add(1, std::memory_order_relaxed);
    num_tokens_.fetch_add(num_tokens, std::memory_order_relaxed);
    return Verdict::kEntered;
  }
  // It started, or ended before that.
  void Leave(uint64_t num_tokens) {
    num_requests_.fetch_sub(1, std::memory_order_relaxed);
    num_tokens_.fetch_sub(num_tokens, std::memory_order_relaxed);
  }

  uint32_t num_requests() const { return num_requests_.load(std::memory_order_relaxed); }
  uint64_t num_tokens() const { return num_tokens_.load(std::memory_order_relaxed); }
  uint64_t num_refused_for_requests() const {
    return num_refused_for_requests_.load(std::memory_order_relaxed);
  }
  uint64_t num_refused_for_tokens() const {
    return num_refused_for_tokens_.load(std::memory_order_relaxed);
  }

 private:
  const uint32_t most_requests_;
  const uint64_t most_tokens_;
  std::atomic<uint32_t> num_requests_{0};
  std::atomic<uint64_t> num_tokens_{0};
  std::atomic<uint64_t> num_refused_for_requests_{0}, num_refused_for_tokens_{0};
};

}  // namespace quire
