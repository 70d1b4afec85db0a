// What leaves the prefix tree, and why.
#include "base/check.h"
#include "base/errors.h"
#include "cache/prefix_tree.h"

namespace quire {

void PrefixTree::DropPage(NodeId id, PageClass c, EvictReason reason) {
  const bool is_for_room = reason == EvictReason::kPoolFull || reason == EvictReason::kTenantShare;
  if (is_for_room && entries_[id].was_retained) reason = EvictReason::kTtl;
  ++counts_[c].num_evicted[static_cast<size_t>(reason)];
  PageId& slot = pages_[Slot(id, c)];
  for (uint32_t i = 0; i < NumPins(id, c); ++i) pool_->Unpin(c, slot - 1);
  if (owners_[c][slot - 1] == id + 1) owners_[c][slot - 1] = 0;
  pool_->Unkeep(c, slot - 1);
  if (!pool_->is_kept(c, slot - 1)) shares_.Subtract(TenantOf(id), pool_->stride(c));
  slot = 0;
}

uint32_t PrefixTree::DropSecondary(NodeId id, EvictReason reason) {
  uint32_t num_pages = 0;
  for (PageClass c = 0; c < num_classes_; ++c) {
    if (!has_page(id, c) || !IsSecondary(id, c) || pool_->num_uses(c, page(id, c)) > 0) continue;
    DropPage(id, c, reason);
    ++num_pages;
  }
  PutInList(id, kNone);
  RemoveUseless(id);
  return num_pages;
}

void PrefixTree::Remove(NodeId id, EvictReason reason) {
  QUIRE_CHECK(nodes_[id].num_children == 0 && entries_[id].num_locks == 0);
  SetEnd(id, false);
  PutInList(id, kNone);
  for (PageClass c = 0; c < num_classes_; ++c)
    if (has_page(id, c)) DropPage(id, c, reason);
  policy_->Remove(id);
  shares_.Changed(TenantOf(id));
  const NodeId above = parent(id);
  if (!entries_[id].is_dropped && nodes_[id].num_tokens == shape_.page_size)
    entries_[above].evicted_child = uses_[id].key;
  nodes_.Remove(id);
  uses_[id] = {};
  UpdateEvictable(above);
  UpdateBranch(above);
}

void PrefixTree::RemoveUseless(NodeId id) {
  while (IsEvictable(id) && (entries_[id].is_dropped || !HasPages(id))) {
    const NodeId above = parent(id);
    Remove(id, EvictReason::kDropped);  // or it has no page
    id = above;
  }
}

bool PrefixTree::EvictNode() {
  const auto [id, is_by_share] = shares_.Choose(*policy_);
  if (id == kNoNode) return false;
  const NodeId above = parent(id);
  residency_.Evict(id);
  Remove(id, is_by_share ? EvictReason::kTenantShare : EvictReason::kPoolFull);
  RemoveUseless(above);
  ++num_evicted_nodes_;
  return true;
}

bool PrefixTree::EvictOne() {
  while (lists_[kFallen].first != kNoNode) {
    const uint32_t num_pages = DropSecondary(lists_[kFallen].first, EvictReason::kWindow);
    num_evicted_secondary_ += num_pages;
    if (num_pages > 0) return true;
  }
  if (EvictNode()) return true;
  while (lists_[kMarked].first != kNoNode) {
    const uint32_t num_pages = DropSecondary(lists_[kMarked].first, EvictReason::kPoolFull);
    num_evicted_secondary_ += num_pages;
    if (num_pages > 0) return true;
  }
  return false;
}

void PrefixTree::Drop(NodeId id, EvictReason reason) {
  const NodeId above = parent(id);
  std::vector<NodeId> order{id};
  for (size_t i = 0; i < order.size(); ++i) nodes_.AppendChildren(order[i], &order);
  for (size_t i = order.size(); i-- > 0;) {  // children before their parents
    const NodeId node = order[i];
    if (is_root(node)) continue;
    Entry& entry = entries_[node];
    entry.is_dropped = true;
    UpdateUse(node);
    if (IsEvictable(node)) Remove(node, reason);
  }
  if (above != kNoNode) RemoveUseless(above);
}

// Whether a sequence is anywhere below this root.
bool PrefixTree::HasLocks(NodeId root) const {
  std::vector<NodeId> order{root};
  for (size_t i = 0; i < order.size(); ++i) {
    if (is_locked(order[i])) return true;
    nodes_.AppendChildren(order[i], &order);
  }
  return false;
}

NodeId PrefixTree::RootToReuse() {
  if (lists_[kIdle].first != kNoNode) return lists_[kIdle].first;
  TenantId tenant = 0;
  uint32_t most = 0;
  for (TenantId id = 0; id < left_.size(); ++id)
    if (left_[id].first != kNoNode && num_namespaces_of_[id] > most)
      most = num_namespaces_of_[tenant = id];
  if (most == 0) return kNoNode;
  NodeId root = left_[tenant].first;
  while (root != kNoNode && HasLocks(root)) root = entries_[root].next;
  if (root != kNoNode) Drop(root, EvictReason::kTenantShare);
  return root;
}

StatusOr<NamespaceId> PrefixTree::ReuseNamespace(TenantId tenant, uint64_t key) {
  const NodeId root = RootToReuse();
  if (root == kNoNode)
    return ResourceExhausted("{} cache namespaces are in use, no more are possible",
                             namespaces_.size());
  const NamespaceId ns = uses_[root].ns;
  PutInList(root, kNone);
  --num_namespaces_of_[namespaces_[ns].tenant];
  namespaces_[ns].tenant = tenant;
  InitRoot(ns, key);
  return ns;
}

}  // namespace quire
