#include "cache/tenant_shares.h"

#include <gtest/gtest.h>

#include <map>

namespace quire {
namespace {

// One victim for each tenant, node = 100 + tenant, of a worth that the test sets.
class FixedPolicy : public EvictionPolicy {
 public:
  explicit FixedPolicy(std::map<TenantId, double> worth) : worth_(std::move(worth)) {}
  void Insert(NodeId, const CachedNode&) override {}
  void Hit(NodeId) override {}
  void SetEvictable(NodeId, bool) override {}
  void Remove(NodeId) override {}
  NodeId Victim(TenantId tenant) const override {
    return worth_.contains(tenant) ? 100 + tenant : kNoNode;
  }
  double Worth(NodeId node) const override { return worth_.at(node - 100); }
  Status CheckInvariants() const override { return OkStatus(); }

 private:
  std::map<TenantId, double> worth_;
};

void Cache(TenantShares& shares, TenantId tenant, int num_pages) {
  for (int i = 0; i < num_pages; ++i) shares.Add(tenant, 10);
  shares.Touch(tenant, 1);
}

// The choice of a policy that knows other worths than the last one.
NodeId Ask(TenantShares& shares, const EvictionPolicy& policy) {
  for (TenantId tenant = 0; tenant < 3; ++tenant) shares.Changed(tenant);
  return shares.Choose(policy).node;
}

TEST(TenantShares, WhoeverHoldsMostForItsShareGives) {
  TenantShares shares;
  const FixedPolicy policy({{0, 0.5}, {1, 0.5}, {2, 0.5}});
  EXPECT_EQ(shares.Choose(policy).node, kNoNode);  // [cache.tenant.1]
  Cache(shares, 0, 40);
  Cache(shares, 1, 41);
  Cache(shares, 2, 60);
  EXPECT_EQ(shares.Choose(policy).node, 102u);
  shares.SetShare(2, 2);
  EXPECT_EQ(shares.Choose(policy).node, 101u);
  for (int i = 0; i < 2; ++i) shares.Subtract(1, 10);
  EXPECT_EQ(shares.Choose(policy).node, 100u);
  EXPECT_EQ(shares.cached_bytes(1), 390u);
}

TEST(TenantShares, ATenantWithNothingToGiveIsPassedOver) {
  TenantShares shares;
  Cache(shares, 0, 10);
  Cache(shares, 1, 90);
  EXPECT_EQ(Ask(shares, FixedPolicy({{0, 0.5}})), 100u);
  EXPECT_EQ(Ask(shares, FixedPolicy({})), kNoNode);
}

// [cache.tenant.2]
TEST(TenantShares, MemoryIsLentOnlyWhereItsOwnersPagesAreWorthNextToNothing) {
  TenantShares shares;
  Cache(shares, 0, 90);
  Cache(shares, 1, 10);
  EXPECT_EQ(Ask(shares, FixedPolicy({{0, 0.8}, {1, 0.11}})), 100u);
  EXPECT_EQ(Ask(shares, FixedPolicy({{0, 0.8}, {1, 0.09}})), 101u);
  EXPECT_EQ(Ask(shares, FixedPolicy({{0, 0.0}, {1, 0.0}})), 100u);  // lru: worth unknown
}

TEST(TenantShares, ATenantThatStaysAwayGivesFirstAndComesBackWithItsShare) {
  TenantShares shares;
  const FixedPolicy policy({{0, 0.5}, {1, 0.01}});
  Cache(shares, 0, 10);
  Cache(shares, 1, 90);
  EXPECT_EQ(shares.Choose(policy).node, 101u);
  shares.Touch(1, TenantShares::kIdleTurnovers * 100);
  EXPECT_EQ(shares.Choose(policy).node, 100u);
  shares.Touch(0, 1);
  EXPECT_EQ(shares.Choose(policy).node, 101u);
}

}  // namespace
}  // namespace quire
