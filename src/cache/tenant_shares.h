// Which tenant gives up a page when the cache is full.
//
// Each tenant has a share, a weight. The tenant with the most cached bytes for its share gives. One
// exception lends memory that its owner makes no use of: when some other tenant's cheapest page is
// worth less than 1 / kLendFactor of the page that would go, that one goes, although its owner may
// be below its share. So a tenant that floods the cache with pages nobody asks for again is held to
// few pages, and tenants whose pages are used divide the memory by their shares. Policies that know
// no worth (lru) never lend.
//
// A tenant that has touched nothing while all others together touched kIdleTurnovers x all cached
// pages has no share until it comes back: its pages go first.
//
// Worth is counted in the tenant's own touches (cache/eviction_policy.h), so sending more requests
// makes no tenant's pages worth more.
//
// Threading: not thread-safe; owned by the engine thread.
// Cost: Choose() asks the policy once for each tenant with cached pages. Nothing allocates, except
// the first call with a tenant id larger than all before it.
//
// Invariants (tenant_shares_test.cc):
//   [cache.tenant.1] Choose() is kNoNode only if no tenant has an evictable node.
//   [cache.tenant.2] Where no page is worth less than 1 / kLendFactor of another, a tenant at or
//   below
//     its share of the cached bytes loses no page while one above its share has an evictable one.
#pragma once

#include <cstdint>
#include <vector>

#include "cache/eviction_policy.h"

namespace quire {

class TenantShares {
 public:
  static constexpr double kLendFactor = 8;
  static constexpr uint64_t kIdleTurnovers = 8;

  // Requires: share > 0. A tenant that was never set has share 1.
  void SetShare(TenantId tenant, double share);

  // A page of this tenant has come into the tree, or has left it.
  void Add(TenantId tenant, uint64_t bytes);
  void Subtract(TenantId tenant, uint64_t bytes);

  // The tenant's requests went through this many nodes: hits and insertions.
  void Touch(TenantId tenant, uint64_t num_nodes);

  // The node to give up, or kNoNode if there is none.
  NodeId Choose(const EvictionPolicy& policy) const;

  uint64_t cached_bytes(TenantId tenant) const {
    return tenant < tenants_.size() ? tenants_[tenant].cached_bytes : 0;
  }

 private:
  struct Tenant {
    double share = 1;
    uint64_t cached_bytes = 0;
    uint64_t last_touch = 0;  // num_touched_ then
  };

  Tenant& At(TenantId tenant);

  std::vector<Tenant> tenants_;
  uint64_t num_touched_ = 0;  // nodes, by all tenants
  uint64_t num_cached_ = 0;   // nodes of all tenants
};

}  // namespace quire
