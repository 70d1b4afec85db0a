#include "server/tenant_limits.h"

#include <gtest/gtest.h>

#include <random>

namespace quire {
namespace {

using Clock = TenantLimits::Clock;

Clock::time_point At(double seconds) {
  return Clock::time_point(
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(1000 + seconds)));
}

TEST(TenantLimits, ATenantWithoutARuleHasNoLimit) {
  TenantLimits limits;
  std::vector<TenantSlot> slots;
  for (int i = 0; i < 1000; ++i) {
    auto slot = limits.Enter("any", At(0));
    ASSERT_TRUE(slot.ok());
    slot.value().Charge(1'000'000);
    slots.push_back(std::move(slot.value()));
  }
  EXPECT_EQ(limits.num_held("any"), 1000u);
}

// [server.limits.1]
TEST(TenantLimits, AtMostConcurrencySlotsAreHeld) {
  TenantLimits limits;
  limits.SetRules({{"a", {.concurrency = 2}}});
  auto first = limits.Enter("a", At(0));
  auto second = limits.Enter("a", At(0));
  const auto third = limits.Enter("a", At(0));
  ASSERT_FALSE(third.ok());
  EXPECT_EQ(third.error().status, 429);
  EXPECT_EQ(third.error().code, "tenant_queue_full");
  EXPECT_EQ(third.error().type, "rate_limit_error");
  EXPECT_EQ(third.error().retry_after_s, 1);
  EXPECT_TRUE(limits.Enter("b", At(0)).ok());
  TenantSlot moved = std::move(first.value());
  first.value().Reset();  // holds nothing any more
  EXPECT_FALSE(limits.Enter("a", At(0)).ok());
  moved = TenantSlot();
  EXPECT_TRUE(limits.Enter("a", At(0)).ok());
  EXPECT_EQ(limits.num_held("a"), 1u);
}

// [server.limits.2], [server.limits.3]
TEST(TenantLimits, RequestsAMinuteAreABucket) {
  std::mt19937 random(7);
  TenantLimits limits;
  limits.SetRules({{"a", {.requests_per_minute = 30}}});
  std::vector<double> times;
  double now = 0;
  for (int i = 0; i < 3000; ++i) {
    now += std::uniform_real_distribution<double>(0, 0.3)(random);
    if (limits.Enter("a", At(now)).ok()) times.push_back(now);
  }
  for (size_t first = 0; first < times.size(); first += 5)
    for (size_t last = first; last < times.size(); ++last)
      ASSERT_LE(static_cast<double>(last - first + 1),
                30 * (1 + (times[last] - times[first]) / 60) + 1e-6);
  // Refusals took nothing: the limit is used up to the last request.
  EXPECT_GE(times.size(), static_cast<size_t>(30 + now / 2) - 2);
}

TEST(TenantLimits, RetryAfterIsWhenThereIsRoomAgain) {
  TenantLimits limits;
  limits.SetRules({{"a", {.requests_per_minute = 6}}, {"slow", {.requests_per_minute = 1}}});
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(limits.Enter("a", At(0)).ok());
  const auto refused = limits.Enter("a", At(1));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, "rate_limit_exceeded");
  EXPECT_EQ(refused.error().retry_after_s, 9);
  EXPECT_FALSE(limits.Enter("a", At(9.9)).ok());
  EXPECT_TRUE(limits.Enter("a", At(10)).ok());
}

TEST(TenantLimits, TokensMayGoBelowZeroAndMustComeBack) {
  TenantLimits limits;
  limits.SetRules({{"a", {.tokens_per_minute = 600}}});
  auto slot = limits.Enter("a", At(0));
  slot.value().Charge(1200);
  const auto refused = limits.Enter("a", At(0));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, "rate_limit_exceeded");
  EXPECT_EQ(refused.error().retry_after_s, 61);  // 600 below 0, 10 a second
  EXPECT_FALSE(limits.Enter("a", At(59)).ok());
  EXPECT_TRUE(limits.Enter("a", At(61)).ok());
  slot.value().Charge(uint64_t{1} << 40);
  EXPECT_EQ(limits.Enter("a", At(62)).error().retry_after_s, 120);  // never above
}

TEST(TenantLimits, NewRulesKeepWhatWasUsed) {
  TenantLimits limits;
  limits.SetRules({{"a", {.concurrency = 1, .requests_per_minute = 2}}});
  auto held = limits.Enter("a", At(0));
  held.value().Charge(5);
  limits.SetRules({{"a", {.concurrency = 9, .requests_per_minute = 2, .share = 3}}});
  EXPECT_TRUE(limits.Enter("a", At(0)).ok());
  EXPECT_FALSE(limits.Enter("a", At(0)).ok());
  limits.SetRules({});
  EXPECT_TRUE(limits.Enter("a", At(0)).ok());
  EXPECT_EQ(limits.num_held("a"), 1u);
}

TEST(TenantLimits, NewRulesForgiveNoDebtOfTokens) {
  TenantLimits limits;
  limits.SetRules({{"a", {.tokens_per_minute = 600}}});
  auto slot = limits.Enter("a", At(0));
  slot.value().Charge(1200);
  limits.SetRules({{"a", {.tokens_per_minute = 600}}});
  EXPECT_FALSE(limits.Enter("a", At(0)).ok());
}

TEST(TenantLimits, ASlotMayOutliveTheLimits) {
  TenantSlot slot;
  {
    TenantLimits limits;
    slot = std::move(limits.Enter("a", At(0)).value());
  }
  slot.Charge(3);
}

}  // namespace
}  // namespace quire
