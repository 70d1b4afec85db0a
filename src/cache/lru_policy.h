// Eviction of the evictable node that was touched longest ago; tails first.
//
// A touch is an insertion or a hit. The order is by touch, not by when a node became evictable: a
// page whose last child goes stands where its own last touch puts it.
#pragma once

#include <vector>

#include "cache/eviction_policy.h"
#include "cache/node_heaps.h"

namespace quire {

class LruPolicy : public EvictionPolicy {
 public:
  explicit LruPolicy(uint32_t max_nodes) : heaps_(max_nodes), nodes_(max_nodes) {}

  void Insert(NodeId node, const CachedNode& what) override;
  void Hit(NodeId node) override;
  void SetEvictable(NodeId node, bool evictable) override;
  void Remove(NodeId node) override;
  NodeId Victim(TenantId tenant) const override;
  double Worth(NodeId) const override { return 0; }
  Status CheckInvariants() const override;

 private:
  struct Node {
    uint64_t touched;  // the clock then
    TenantId tenant;
    bool is_inserted, is_tail, is_evictable;
  };
  struct Tenant {  // roots of heaps
    NodeId tails = kNoNode, full_pages = kNoNode;
  };

  NodeId* HeapOf(const Node& node) {
    Tenant& tenant = tenants_[node.tenant];
    return node.is_tail ? &tenant.tails : &tenant.full_pages;
  }

  NodeHeaps heaps_;  // the evictable nodes, by touch
  LazyArray<Node> nodes_;
  std::vector<Tenant> tenants_;
  uint64_t clock_ = 0;
};

}  // namespace quire
