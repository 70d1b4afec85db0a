// Which tenant gives up a page when the cache is full.
//
// Each tenant has a share, a weight. The tenant with the most cached bytes for its share gives. One
// exception lends memory that its owner makes no use of: when what some other tenant
// would give is worth less than 1 / kLendFactor of the page that would go, that one goes, although
// its owner may be below its share. So a tenant that floods the cache with pages nobody asks for
// again is held to few pages, and tenants whose pages are used divide the memory by their shares.
// Policies that know no worth (lru) never lend.
//
// A tenant that has touched nothing while all others together touched kIdleTurnovers x all cached
// pages has no share until it comes back: its pages go first.
//
// Worth is counted in the tenant's own touches (cache/eviction_policy.h), so sending more requests
// makes no tenant's pages worth more.
//
// Threading: not thread-safe; owned by the engine thread.
// Cost: Choose() asks the policy once for each tenant that something has happened to since the last
// time (Add, Subtract, Touch, Changed), and takes O(log tenants) for each. Nothing allocates,
// except the first call with a tenant id larger than all before it.
//
// Invariants (tenant_shares_test.cc):
//   [cache.tenant.1] Choose() is kNoNode only if no tenant has an evictable node.
//   [cache.tenant.4] Choose() names what a look at all tenants would name.
//   [cache.tenant.2] Where no page is worth less than 1 / kLendFactor of another, a tenant at or
//                    below its share of the cached bytes loses no page while one above its share
//                    has an evictable one.
#pragma once

#include <cstdint>
#include <vector>

#include "cache/eviction_policy.h"
#include "cache/tenant_heap.h"

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

  // The policy was told something about a node of this tenant.
  void Changed(TenantId tenant) { Mark(tenant); }

  struct Choice {
    NodeId node = kNoNode;  // to give up; kNoNode if there is none
    // A page of another tenant was worth no more, but this one has more for its share, or none.
    bool is_by_share = false;
  };
  Choice Choose(const EvictionPolicy& policy);

  uint64_t cached_bytes(TenantId tenant) const {
    return tenant < tenants_.size() ? tenants_[tenant].cached_bytes : 0;
  }

 private:
  struct Tenant {
    double share = 1;
    uint64_t cached_bytes = 0;
    uint64_t last_touch = 0;                  // num_touched_ then
    bool is_marked = false;                   // in marked_
    bool is_idle = false;                     // as of the last Choose()
    NodeId victim = kNoNode;                  // as of then; kNoNode: it has nothing to give
    TenantId previous = kNone, next = kNone;  // in order of last_touch
  };
  static constexpr TenantId kNone = ~TenantId{0};

  Tenant& At(TenantId tenant);
  bool IsIdle(const Tenant& tenant) const {
    return num_touched_ - tenant.last_touch > kIdleTurnovers * num_cached_;
  }
  void Mark(TenantId tenant);
  void Refresh(TenantId tenant, const EvictionPolicy& policy);
  void SetIdle(TenantId tenant, bool is_idle);
  void MoveToEnd(TenantId tenant);  // of the order of touch

  std::vector<Tenant> tenants_;
  std::vector<TenantId> marked_;  // what happened to them is not in the heaps yet
  // Tenants with something to give: by minus their bytes for their share, idle ones apart; by the
  // worth of what they would give.
  TenantHeap active_, idle_, by_worth_;
  TenantId first_ = kNone, last_ = kNone;  // in order of touch; idle ones are the first of them
  TenantId first_active_ = kNone;
  uint64_t num_touched_ = 0;  // nodes, by all tenants
  uint64_t num_cached_ = 0;   // nodes of all tenants
};

}  // namespace quire
