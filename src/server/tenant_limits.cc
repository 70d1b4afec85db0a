#include "server/tenant_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace quire {

// What a tenant has and had.
struct TenantSlot::State {
  TenantQuota quota;
  uint32_t num_held = 0;
  // What is left of the minute; refilled up to `then`.
  double requests = 0, tokens = 0;
  TenantLimits::Clock::time_point then{};

  void Refill(TenantLimits::Clock::time_point now) {
    const double minutes = std::chrono::duration<double, std::ratio<60>>(now - then).count();
    if (minutes <= 0) return;
    then = now;
    const double rpm = quota.requests_per_minute;
    const auto tpm = static_cast<double>(quota.tokens_per_minute);
    requests = std::min(rpm, requests + minutes * rpm);
    tokens = std::min(tpm, tokens + minutes * tpm);
  }
};

namespace {

ApiError TooMuch(std::string code, std::string message, double seconds) {
  // Clients give up at once above 120 s, so that a longer wait is told in pieces.
  const int wait_s = std::clamp(static_cast<int>(std::ceil(std::min(seconds, 120.0))), 1, 120);
  return {.status = 429,
          .type = "rate_limit_error",
          .code = std::move(code),
          .message = std::move(message),
          .retry_after_s = wait_s};
}

}  // namespace

TenantSlot::TenantSlot(std::shared_ptr<State> state) : state_(std::move(state)) {
  ++state_->num_held;
}

void TenantSlot::Reset() {
  if (state_ != nullptr) --state_->num_held;
  state_ = nullptr;
}

void TenantSlot::Charge(uint64_t num_tokens) {
  if (state_ != nullptr && state_->quota.tokens_per_minute > 0)
    state_->tokens -= static_cast<double>(num_tokens);
}

void TenantLimits::SetRules(const std::vector<TenantRule>& rules) {
  std::unordered_map<std::string, TenantQuota> quotas;
  for (const TenantRule& rule : rules) quotas[rule.tenant] = rule.quota;
  for (const auto& [tenant, state] : tenants_) quotas.try_emplace(tenant);
  for (const auto& [tenant, quota] : quotas) {
    auto& state = tenants_[tenant];
    if (state == nullptr) state = std::make_shared<TenantSlot::State>();
    // A bucket that is new, or had no limit, starts full; the others keep what was used.
    const double rpm = quota.requests_per_minute;
    const auto tpm = static_cast<double>(quota.tokens_per_minute);
    const bool had_rpm = state->quota.requests_per_minute > 0;
    const bool had_tpm = state->quota.tokens_per_minute > 0;
    state->requests = had_rpm ? std::min(state->requests, rpm) : rpm;
    state->tokens = had_tpm ? std::min(state->tokens, tpm) : tpm;
    state->quota = quota;
  }
}

ApiResult<TenantSlot> TenantLimits::Enter(const std::string& tenant, Clock::time_point now) {
  auto& state = tenants_[tenant];
  if (state == nullptr) state = std::make_shared<TenantSlot::State>();
  state->Refill(now);
  const TenantQuota& quota = state->quota;
  if (quota.concurrency > 0 && state->num_held >= quota.concurrency)
    return TooMuch("tenant_queue_full",
                   fmt::format("{} requests of your tenant are running or waiting, as many as its "
                               "limit allows: wait for one to end.",
                               state->num_held),
                   1);
  if (quota.requests_per_minute > 0 && state->requests < 1)
    return TooMuch(
        "rate_limit_exceeded",
        fmt::format("Your tenant has used up its {} requests a minute.", quota.requests_per_minute),
        60 * (1 - state->requests) / quota.requests_per_minute);
  if (quota.tokens_per_minute > 0 && state->tokens <= 0)
    return TooMuch(
        "rate_limit_exceeded",
        fmt::format("Your tenant has used up its {} tokens a minute.", quota.tokens_per_minute),
        60 * (1 - state->tokens) / static_cast<double>(quota.tokens_per_minute));
  if (quota.requests_per_minute > 0) state->requests -= 1;
  return TenantSlot(state);
}

uint32_t TenantLimits::num_held(const std::string& tenant) const {
  const auto state = tenants_.find(tenant);
  return state == tenants_.end() ? 0 : state->second->num_held;
}

}  // namespace quire
