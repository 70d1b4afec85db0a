// The invariants of the prefix tree, counted from scratch.
#include <map>

#include "base/errors.h"
#include "cache/prefix_tree.h"

namespace quire {

Status PrefixTree::CheckNode(NodeId id) const {
  const Entry& entry = entries_[id];
  if (entry.is_evictable != IsEvictable(id))
    return Internal("[cache.tree.2] node {} with {} children, {} locks and {} pins is {}", id,
                    nodes_[id].num_children, entry.num_locks, entry.num_pins,
                    entry.is_evictable ? "evictable" : "not evictable");
  if (entry.is_evictable && (entry.is_dropped || !HasPages(id)))
    return Internal("[cache.tree.2] node {} is dropped or has no page, and stays", id);
  const List list = entry.num_marks > 0 ? kMarked : kFallen;
  if (HasUnusedSecondary(id) && entry.list != list)
    return Internal("[cache.tree.3] node {} with {} marks has unused pages and is in list {}", id,
                    entry.num_marks, static_cast<int>(entry.list));
  return OkStatus();
}

// `order`: all nodes, parents before their children.
Status PrefixTree::CheckReach(std::span<const NodeId> order) const {
  std::vector<bool> stays(nodes_.max_nodes());  // or a node below does
  for (size_t i = order.size(); i-- > 0;) {
    const NodeId id = order[i];
    if (is_root(id)) continue;
    const Entry& entry = entries_[id];
    if (entry.num_locks > 0 || entry.num_pins > 0) stays[id] = true;
    if (!stays[id]) continue;
    stays[parent(id)] = true;
    for (PageClass c = 0; c < num_classes_; ++c)
      if (has_page(id, c) && !IsSecondary(id, c) && pool_->num_uses(c, page(id, c)) == 0 &&
          !pool_->is_pinned(c, page(id, c)))
        return Internal("[cache.tree.3] node {} stays, nobody uses its page {} of class {}", id,
                        page(id, c), static_cast<int>(c));
  }
  return OkStatus();
}

Status PrefixTree::CheckInvariants() const {
  QUIRE_RETURN_IF_ERROR(nodes_.CheckInvariants());
  QUIRE_RETURN_IF_ERROR(policy_->CheckInvariants());
  std::vector<size_t> num_kept(num_classes_);
  std::map<TenantId, size_t> bytes;
  std::vector<NodeId> order;
  for (const Namespace& ns : namespaces_) order.push_back(ns.root);
  for (size_t i = 0; i < order.size(); ++i) {
    const NodeId id = order[i];
    nodes_.AppendChildren(id, &order);
    if (is_root(id)) continue;
    QUIRE_RETURN_IF_ERROR(CheckNode(id));
    for (PageClass c = 0; c < num_classes_; ++c) {
      if (!has_page(id, c)) continue;
      if (!pool_->is_kept(c, page(id, c)))
        return Internal("[cache.tree.1] node {}: page {} of class {} is not kept", id, page(id, c),
                        static_cast<int>(c));
      ++num_kept[c];
      bytes[TenantOf(id)] += pool_->stride(c);
    }
  }
  QUIRE_RETURN_IF_ERROR(CheckReach(order));
  if (order.size() != nodes_.num_nodes())
    return Internal("[cache.tree.1] {} nodes, {} reached", nodes_.num_nodes(), order.size());
  for (PageClass c = 0; c < num_classes_; ++c) {
    size_t kept = 0;
    for (PageId id = 0; id < pool_->num_pages(c); ++id) kept += pool_->num_keeps(c, id);
    if (kept != num_kept[c])
      return Internal("[cache.tree.1] class {}: the pages have {} keeps, the nodes {}",
                      static_cast<int>(c), kept, num_kept[c]);
  }
  for (const Namespace& ns : namespaces_)
    if (bytes[ns.tenant] != tenant_bytes(ns.tenant))
      return Internal("[cache.tree.4] tenant {} keeps {} bytes, {} counted", ns.tenant,
                      bytes[ns.tenant], tenant_bytes(ns.tenant));
  return OkStatus();
}

}  // namespace quire
