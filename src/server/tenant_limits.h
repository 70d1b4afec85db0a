// TenantLimits: how much each tenant may ask for at a time: requests at once, requests and tokens
// in a minute. What a tenant's share of memory and steps is, the cache and the scheduler keep.
//
// Rates are token buckets of one minute's size, full at first. A request is let in while the bucket
// of tokens is above 0; its prompt and each answer are then taken from it, and it may go below 0:
// so a tenant's mean rate never exceeds its limit, and no request has to guess how long it will be.
//
// Threading: not thread-safe; the HTTP thread's. Times come from the caller.
//
// Invariants (tenant_limits_test.cc):
//   [server.limits.1] At most `concurrency` slots of a tenant are held at once.
//   [server.limits.2] In any span of t seconds at most rpm * (1 + t / 60) requests are let in.
//   [server.limits.3] A refusal takes nothing.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "server/api/api_error.h"
#include "server/key_file.h"

namespace quire {

class TenantLimits;

// One request of a tenant, from Enter until the slot is destroyed or reset.
class TenantSlot {
 public:
  TenantSlot() = default;  // holds nothing
  TenantSlot(TenantSlot&& other) noexcept : state_(std::move(other.state_)) {}
  TenantSlot& operator=(TenantSlot&& other) noexcept {
    Reset();
    state_ = std::move(other.state_);
    return *this;
  }
  TenantSlot(const TenantSlot&) = delete;
  TenantSlot& operator=(const TenantSlot&) = delete;
  ~TenantSlot() { Reset(); }

  void Reset();
  // Takes so many tokens from the tenant's minute: the prompt's when it is known, the answer's at
  // its end.
  void Charge(uint64_t num_tokens);

 private:
  friend class TenantLimits;
  struct State;
  explicit TenantSlot(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

class TenantLimits {
 public:
  using Clock = std::chrono::steady_clock;

  // New limits from now on, at the start and after the key file was read again. Tenants that are
  // not named have none. What is held and was used stays counted.
  void SetRules(const std::vector<TenantRule>& rules);

  // 429 tenant_queue_full: as many requests as `concurrency` are there; 429 rate_limit_exceeded: a
  // minute's requests or tokens are used up, with the time until there is some again.
  ApiResult<TenantSlot> Enter(const std::string& tenant, Clock::time_point now);

  uint32_t num_held(const std::string& tenant) const;

 private:
  std::unordered_map<std::string, std::shared_ptr<TenantSlot::State>> tenants_;
};

}  // namespace quire
