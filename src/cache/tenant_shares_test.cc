#include "cache/tenant_shares.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

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
    ++num_asked;
    return worth_.contains(tenant) ? 100 + tenant : kNoNode;
  }
  double Worth(NodeId node) const override { return worth_.at(node - 100); }
  Status CheckInvariants() const override { return OkStatus(); }

  mutable uint64_t num_asked = 0;

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

TEST(TenantShares, AChoiceSaysIfAShareMadeIt) {
  TenantShares shares;
  Cache(shares, 0, 90);
  Cache(shares, 1, 10);
  const auto is_by_share = [&](std::map<TenantId, double> worth) {
    const FixedPolicy policy(std::move(worth));
    Ask(shares, policy);
    return shares.Choose(policy).is_by_share;
  };
  EXPECT_FALSE(is_by_share({{0, 0.5}}));            // nobody else has anything
  EXPECT_FALSE(is_by_share({{0, 0.5}, {1, 0.6}}));  // it is worth least anyway
  EXPECT_TRUE(is_by_share({{0, 0.5}, {1, 0.5}}));
  EXPECT_TRUE(is_by_share({{0, 0.5}, {1, 0.4}}));
  EXPECT_FALSE(is_by_share({{0, 0.5}, {1, 0.04}}));  // lent memory: worth next to nothing
}

// What a look at all tenants chooses.
class PlainShares {
 public:
  struct Tenant {
    double share = 1;
    uint64_t cached_bytes = 0, last_touch = 0;
  };
  explicit PlainShares(uint32_t num_tenants) : tenants(num_tenants) {}

  NodeId Choose(const EvictionPolicy& policy) const {
    NodeId over = kNoNode, cheapest = kNoNode;
    double most = 0, least = 0;
    bool over_is_idle = false;
    for (TenantId id = 0; id < tenants.size(); ++id) {
      const Tenant& tenant = tenants[id];
      if (tenant.cached_bytes == 0) continue;
      const NodeId victim = policy.Victim(id);
      if (victim == kNoNode) continue;
      const bool is_idle =
          num_touched - tenant.last_touch > TenantShares::kIdleTurnovers * num_cached;
      const double bytes_for_share = static_cast<double>(tenant.cached_bytes) / tenant.share;
      if (over == kNoNode || (is_idle != over_is_idle ? is_idle : bytes_for_share > most)) {
        over = victim;
        most = bytes_for_share;
        over_is_idle = is_idle;
      }
      const double worth = policy.Worth(victim);
      if (cheapest == kNoNode || worth < least) {
        cheapest = victim;
        least = worth;
      }
    }
    if (over == kNoNode || over_is_idle) return over;
    return TenantShares::kLendFactor * least < policy.Worth(over) ? cheapest : over;
  }

  std::vector<Tenant> tenants;
  uint64_t num_touched = 0, num_cached = 0;
};

// [cache.tenant.4]
TEST(TenantShares, TheChoiceIsThatOfALookAtAllTenants) {
  uint64_t num_idle = 0, num_lent = 0;
  for (uint32_t seed = 0; seed < 30; ++seed) {
    std::mt19937 random(seed);
    const uint32_t num_tenants = 2 + random() % 12;
    TenantShares shares;
    PlainShares plain(num_tenants);
    std::map<TenantId, double> worth;
    for (int i = 0; i < 3000; ++i) {
      // Some are busy for a while and others stay away.
      const uint32_t first = static_cast<uint32_t>(i / 300) % num_tenants;
      const TenantId id =
          random() % 8 == 0 ? random() % num_tenants : (first + random() % 2) % num_tenants;
      PlainShares::Tenant& tenant = plain.tenants[id];
      switch (random() % 6) {
        case 0:
          shares.Add(id, 10);
          tenant.cached_bytes += 10;
          ++plain.num_cached;
          break;
        case 1:
          if (tenant.cached_bytes == 0) break;
          shares.Subtract(id, 10);
          tenant.cached_bytes -= 10;
          --plain.num_cached;
          break;
        case 2: {
          const uint64_t num_nodes = random() % 30;
          shares.Touch(id, num_nodes);
          tenant.last_touch = plain.num_touched += num_nodes;
          break;
        }
        case 3:
          tenant.share = 1 << random() % 3;
          shares.SetShare(id, tenant.share);
          break;
        default:
          if (random() % 4 == 0)
            worth.erase(id);
          else
            worth[id] = static_cast<double>(random() % 5) / 4 * (random() % 8 == 0 ? 0.05 : 1);
          shares.Changed(id);
      }
      const FixedPolicy policy(worth);
      const NodeId need = plain.Choose(policy), choice = shares.Choose(policy).node;
      ASSERT_EQ(choice, need) << "seed " << seed << ", step " << i;
      if (need == kNoNode) continue;
      const auto& gives = plain.tenants[need - 100];
      num_idle +=
          plain.num_touched - gives.last_touch > TenantShares::kIdleTurnovers * plain.num_cached
              ? 1
              : 0;
      num_lent += std::any_of(plain.tenants.begin(), plain.tenants.end(),
                              [&](const auto& t) { return t.cached_bytes > gives.cached_bytes; })
                      ? 1
                      : 0;
    }
  }
  EXPECT_GT(num_idle, 1000u);
  EXPECT_GT(num_lent, 1000u);
}

TEST(TenantShares, AChoiceAsksOnlyWhomSomethingHappenedTo) {
  constexpr TenantId kTenants = 10'000;
  TenantShares shares;
  std::map<TenantId, double> worth;
  for (TenantId id = 0; id < kTenants; ++id) {
    Cache(shares, id, 1 + static_cast<int>(id % 7));
    worth[id] = 0.5;
  }
  const FixedPolicy policy(worth);
  EXPECT_EQ(shares.Choose(policy).node, 106u);
  policy.num_asked = 0;
  for (TenantId i = 0; i < 1000; ++i) {
    const TenantId gives = shares.Choose(policy).node - 100;
    shares.Subtract(gives, 10);
    shares.Touch(i, 1);
  }
  EXPECT_LE(policy.num_asked, 2'000u);
}

}  // namespace
}  // namespace quire
