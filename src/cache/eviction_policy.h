// Which cached page goes next: what the prefix tree asks of an eviction policy.
//
// The tree tells a policy what happens to its nodes (one node = one cached page) and asks for a
// victim when it needs room. A policy keeps its own state by NodeId, holds no page and frees none:
// the tree does. Only evictable nodes are ever named: leaves that no running sequence locks and
// that are neither pinned nor retained; the tree says which those are (SetEvictable).
//
// Time is a count of calls, never a clock on the wall: the same calls give the same victims on
// every machine.
//
// A policy orders the nodes of each tenant by themselves. Which tenant has to give up a page is
// cache/tenant_shares.h's.
//
// Policies: cache/lru_policy.h, cache/reuse_policy.h.
//
// Threading: not thread-safe; owned by the engine thread.
// Cost: O(log nodes) a call, amortised. Nothing allocates, except the first Insert() of a tenant id
// larger than all before it.
//
// Invariants (CheckInvariants(), eviction_policy_test.cc):
//   [cache.evict.1] Victim(t) is evictable and of tenant t; kNoNode only if t has no such node.
//   [cache.evict.2] A tail (a page that is not full) goes before every full page of its tenant.
//   [cache.evict.3] The same calls since construction give the same victims.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "base/status.h"

namespace quire {

using NodeId = uint32_t;    // a node of the prefix tree, below max_nodes; used again after removal
using TenantId = uint32_t;  // small and dense: 0, 1, 2, ... as tenants appear

constexpr NodeId kNoNode = ~NodeId{0};

// What a policy may know about a node when it comes in.
struct CachedNode {
  // A hash of all tokens from the start of the prefix to the end of this page, namespace included:
  // the same prefix has the same key when it comes again. By it a policy knows pages it has let go.
  // Two prefixes with one key cost a wrong estimate, never a wrong page. Unused if is_tail.
  uint64_t key = 0;
  TenantId tenant = 0;
  bool is_tail = false;  // an ended sequence's page that is not full
};

class EvictionPolicy {
 public:
  virtual ~EvictionPolicy() = default;

  // A node is in the tree now; it is not evictable. Requires: node < max_nodes, and not inserted.
  virtual void Insert(NodeId node, const CachedNode& what) = 0;

  // A request's match went through this node: once for each node of the matched path, root first.
  // Not called for nodes that the request itself inserts.
  virtual void Hit(NodeId node) = 0;

  // Whether Victim() may name the node. Setting what is set already does nothing.
  virtual void SetEvictable(NodeId node, bool evictable) = 0;

  // The node leaves the tree, as a victim or for another reason; evictable or not.
  virtual void Remove(NodeId node) = 0;

  // The evictable node of this tenant that goes next, or kNoNode: tails first, then what is worth
  // least. It stays until Remove(): asked again without a call between, the answer is the same.
  virtual NodeId Victim(TenantId tenant) const = 0;

  // What the node is worth: expected hits for each page that its tenant touches from now on. Not
  // in pages of all tenants: a tenant is not worth more because it sends more. 0: not known (lru).
  virtual double Worth(NodeId node) const = 0;

  // kInternal with the invariant's id if one is broken. Counts from scratch: O(max_nodes).
  virtual Status CheckInvariants() const = 0;
};

enum class EvictionPolicyKind { kLru, kReuse };

constexpr EvictionPolicyKind kDefaultEvictionPolicy = EvictionPolicyKind::kReuse;

// "lru" or "reuse". kInvalidArgument, with the names there are, for another word.
StatusOr<EvictionPolicyKind> ParseEvictionPolicy(std::string_view name);
std::string_view EvictionPolicyName(EvictionPolicyKind kind);

// max_nodes: most nodes at once; state for them is reserved now and committed as it is touched.
// page_size: tokens in a full page.
std::unique_ptr<EvictionPolicy> MakeEvictionPolicy(EvictionPolicyKind kind, uint32_t max_nodes,
                                                   uint32_t page_size);

}  // namespace quire
