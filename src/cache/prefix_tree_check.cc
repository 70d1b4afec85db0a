// The invariants of the prefix tree, counted from scratch.
#include <map>
#include <set>
#include <utility>
#include <vector>

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
  const PrefixNode& node = nodes_[id];
  const bool is_listed = !entry.is_dropped && (node.num_children != 1 || entry.num_own_pins > 0);
  const uint32_t length = is_listed ? LengthOf(id) : 0;
  if (uses_[id].length != length)
    return Internal("[cache.tree.6] node {} has length {} in place of {}", id, uses_[id].length,
                    length);
  return OkStatus();
}

Status PrefixTree::CheckRoots() const {
  for (const Namespace& ns : namespaces_)
    if (entries_[ns.root].list != RootList(ns.root))
      return Internal(
          "[cache.tree.7] the root {} with {} children, {} locks and {} pins is in list "
          "{}",
          ns.root, nodes_[ns.root].num_children, entries_[ns.root].num_locks,
          entries_[ns.root].num_pins, static_cast<int>(entries_[ns.root].list));
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

Status PrefixTree::CheckPages(std::span<const NodeId> order) const {
  std::vector<uint64_t> num_kept(num_classes_);
  std::map<TenantId, size_t> bytes;
  std::set<std::pair<PageClass, PageId>> kept;
  for (const NodeId id : order) {
    for (PageClass c = 0; c < num_classes_; ++c) {
      if (!has_page(id, c)) continue;
      if (!pool_->is_kept(c, page(id, c)))
        return Internal("[cache.tree.1] node {}: page {} of class {} is not kept", id, page(id, c),
                        static_cast<int>(c));
      ++num_kept[c];
      if (kept.emplace(c, page(id, c)).second) bytes[TenantOf(id)] += pool_->stride(c);
    }
  }
  for (PageClass c = 0; c < num_classes_; ++c) {
    size_t keeps = 0;
    for (PageId id = 0; id < pool_->num_pages(c); ++id) keeps += pool_->num_keeps(c, id);
    if (keeps != num_kept[c])
      return Internal("[cache.tree.1] class {}: the pages have {} keeps, the nodes {}",
                      static_cast<int>(c), keeps, num_kept[c]);
    uint64_t num_left = counts_[c].num_kept;
    for (const uint64_t num_evicted : counts_[c].num_evicted) num_left -= num_evicted;
    if (num_left != num_kept[c])
      return Internal("[cache.tree.5] class {}: {} pages are left by the counts, {} are kept",
                      static_cast<int>(c), num_left, num_kept[c]);
  }
  for (const Namespace& ns : namespaces_)
    if (bytes[ns.tenant] != tenant_bytes(ns.tenant))
      return Internal("[cache.tree.4] tenant {} keeps {} bytes, {} counted", ns.tenant,
                      bytes[ns.tenant], tenant_bytes(ns.tenant));
  return OkStatus();
}

Status PrefixTree::CheckInvariants() const {
  QUIRE_RETURN_IF_ERROR(nodes_.CheckInvariants());
  QUIRE_RETURN_IF_ERROR(policy_->CheckInvariants());
  std::vector<NodeId> order;
  for (const Namespace& ns : namespaces_) order.push_back(ns.root);
  for (size_t i = 0; i < order.size(); ++i) {
    nodes_.AppendChildren(order[i], &order);
    if (!is_root(order[i])) QUIRE_RETURN_IF_ERROR(CheckNode(order[i]));
  }
  if (order.size() != nodes_.num_nodes())
    return Internal("[cache.tree.1] {} nodes, {} reached", nodes_.num_nodes(), order.size());
  QUIRE_RETURN_IF_ERROR(CheckPages(order));
  QUIRE_RETURN_IF_ERROR(CheckReach(order));
  return CheckRoots();
}

}  // namespace quire
