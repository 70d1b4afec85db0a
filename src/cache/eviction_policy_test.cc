#include "cache/eviction_policy.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "base/allocation_count.h"

namespace quire {
namespace {

constexpr EvictionPolicyKind kPolicies[] = {EvictionPolicyKind::kLru, EvictionPolicyKind::kReuse};

TEST(EvictionPolicy, NamesAreReadAndWrongOnesNameTheChoices) {
  for (const auto kind : kPolicies)
    EXPECT_EQ(ParseEvictionPolicy(EvictionPolicyName(kind)).value(), kind);
  const auto wrong = ParseEvictionPolicy("LRU");
  EXPECT_EQ(wrong.status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(wrong.status().message(), "unknown eviction policy 'LRU': use lru or reuse");
}

TEST(EvictionPolicy, OnlyEvictableNodesOfTheTenantAreNamed) {
  for (const auto kind : kPolicies) {
    const auto policy = MakeEvictionPolicy(kind, 4, 512);
    EXPECT_EQ(policy->Victim(0), kNoNode);
    policy->Insert(0, {.key = 1, .tenant = 0});
    policy->Insert(1, {.key = 2, .tenant = 2});
    EXPECT_EQ(policy->Victim(0), kNoNode);
    policy->SetEvictable(1, true);
    EXPECT_EQ(policy->Victim(0), kNoNode);
    EXPECT_EQ(policy->Victim(1), kNoNode);
    EXPECT_EQ(policy->Victim(2), 1u);
    EXPECT_EQ(policy->Victim(2), 1u);
    policy->SetEvictable(1, true);
    policy->SetEvictable(1, false);
    EXPECT_EQ(policy->Victim(2), kNoNode);
    policy->SetEvictable(1, true);
    policy->Remove(1);
    EXPECT_EQ(policy->Victim(2), kNoNode);
    EXPECT_TRUE(policy->CheckInvariants().ok());
  }
}

// PFX-11, [cache.evict.2]: 20 pages; a prefix of 10 pages is used by every 5th request, the others
// are 5 tokens long and each leave a page that is not full.
TEST(EvictionPolicy, HalfFilledPagesGoFirstAndTheHotPrefixStays) {
  for (const auto kind : kPolicies) {
    const auto policy = MakeEvictionPolicy(kind, 20, 512);
    for (NodeId node = 0; node < 10; ++node) policy->Insert(node, {.key = node});
    policy->SetEvictable(9, true);
    std::vector<NodeId> free = {10, 11, 12, 13, 14, 15, 16, 17, 18, 19};
    for (int request = 0; request < 1000; ++request) {
      if (request % 5 == 0) {
        for (NodeId node = 0; node < 10; ++node) policy->Hit(node);
        continue;
      }
      if (free.empty()) {
        const NodeId victim = policy->Victim(0);
        ASSERT_GE(victim, 10u) << EvictionPolicyName(kind);
        policy->Remove(victim);
        free.push_back(victim);
      }
      policy->Insert(free.back(), {.is_tail = true});
      policy->SetEvictable(free.back(), true);
      free.pop_back();
    }
  }
}

// Within a tenant tails go first; against other tenants each has the worth of a page like it.
TEST(EvictionPolicy, ATailIsWorthWhatAFullPageOfItsHitsAndAgeIs) {
  const auto policy = MakeEvictionPolicy(EvictionPolicyKind::kReuse, 200, 512);
  policy->Insert(0, {.key = 1});
  policy->Insert(1, {.is_tail = true});
  EXPECT_EQ(policy->Worth(1), policy->Worth(0));
  policy->Hit(0);
  EXPECT_LT(policy->Worth(1), policy->Worth(0));
  policy->Hit(1);
  EXPECT_EQ(policy->Worth(1), policy->Worth(0));
  for (NodeId node = 2; node < 120; ++node) policy->Insert(node, {.key = node});  // time goes by
  EXPECT_EQ(policy->Worth(1), policy->Worth(0));
  EXPECT_LT(policy->Worth(1), policy->Worth(119));
  policy->SetEvictable(0, true);
  policy->SetEvictable(1, true);
  policy->SetEvictable(119, true);
  EXPECT_EQ(policy->Victim(0), 1u);
}

TEST(EvictionPolicy, NothingAllocatesOnceATenantIsThere) {
  for (const auto kind : kPolicies) {
    const auto policy = MakeEvictionPolicy(kind, 100, 512);
    policy->Insert(0, {.key = 0, .tenant = 3});
    policy->Remove(0);
    const uint64_t before = AllocationCount();
    std::mt19937 random(1);
    for (NodeId node = 0; node < 100; ++node) {
      policy->Insert(node, {.key = node, .tenant = node % 4, .is_tail = node % 8 == 0});
      policy->SetEvictable(node, true);
    }
    for (uint64_t step = 0; step < 5000; ++step) {
      const TenantId tenant = step % 4;
      const NodeId victim = policy->Victim(tenant);
      policy->Remove(victim);
      policy->Insert(victim, {.key = random() % 4096, .tenant = tenant});
      policy->SetEvictable(victim, true);
      policy->Hit(random() % 100);
    }
    EXPECT_EQ(AllocationCount(), before);
  }
}

}  // namespace
}  // namespace quire
