#include "cache/lru_policy.h"

#include "base/check.h"
#include "base/errors.h"

namespace quire {

void LruPolicy::Insert(NodeId node, const CachedNode& what) {
  QUIRE_CHECK(node < nodes_.size() && !nodes_[node].is_inserted);
  if (what.tenant >= tenants_.size()) tenants_.resize(what.tenant + 1);
  nodes_[node] = {.touched = ++clock_,
                  .tenant = what.tenant,
                  .is_inserted = true,
                  .is_tail = what.is_tail,
                  .is_evictable = false};
}

void LruPolicy::Hit(NodeId node) {
  Node& state = nodes_[node];
  QUIRE_CHECK(state.is_inserted);
  state.touched = ++clock_;
  if (!state.is_evictable) return;
  heaps_.Erase(node, HeapOf(state));
  heaps_.Insert(node, state.touched, HeapOf(state));
}

void LruPolicy::SetEvictable(NodeId node, bool evictable) {
  Node& state = nodes_[node];
  QUIRE_CHECK(state.is_inserted);
  if (evictable == state.is_evictable) return;
  state.is_evictable = evictable;
  if (evictable)
    heaps_.Insert(node, state.touched, HeapOf(state));
  else
    heaps_.Erase(node, HeapOf(state));
}

void LruPolicy::Remove(NodeId node) {
  SetEvictable(node, false);
  nodes_[node].is_inserted = false;
}

NodeId LruPolicy::Victim(TenantId tenant) const {
  if (tenant >= tenants_.size()) return kNoNode;
  const Tenant& heaps = tenants_[tenant];
  return heaps.tails != kNoNode ? heaps.tails : heaps.full_pages;
}

Status LruPolicy::CheckInvariants() const {
  std::vector<NodeId> first(tenants_.size(), kNoNode);
  for (NodeId node = 0; node < nodes_.size(); ++node) {
    const Node& state = nodes_[node];
    if (!state.is_inserted || !state.is_evictable) continue;
    NodeId& best = first[state.tenant];
    const bool goes_before = best == kNoNode || (state.is_tail != nodes_[best].is_tail
                                                     ? state.is_tail
                                                     : state.touched < nodes_[best].touched);
    if (goes_before) best = node;
  }
  for (TenantId tenant = 0; tenant < tenants_.size(); ++tenant)
    if (Victim(tenant) != first[tenant])
      return Internal("[cache.evict.1] tenant {}: victim {}, need {}", tenant, Victim(tenant),
                      first[tenant]);
  return OkStatus();
}

}  // namespace quire
