#include "cache/prefix_tree.h"

#include <algorithm>

#include "base/check.h"
#include "base/errors.h"
#include "base/fnv.h"

namespace quire {
namespace {

// Nodes keep a page each, but where all groups have windows, long texts leave nodes without pages.
constexpr size_t kNodesPerWindowPage = 16;

uint32_t MaxNodes(const KvShape& shape, const PagePool& pool, uint32_t max_namespaces) {
  size_t most = 0;
  bool has_full = false;
  for (uint32_t g = 0; g < shape.num_groups(); ++g) {
    has_full = has_full || shape.groups[g].window == 0;
    for (const PageClass c : {OpenClass(g), SealedClass(g)})
      most = std::max<size_t>(most, pool.num_pages(c));
  }
  if (!has_full) most *= kNodesPerWindowPage;
  return static_cast<uint32_t>(std::min<size_t>(most + max_namespaces, size_t{1} << 28));
}

// The key of a prefix: FNV-1a by token, on from its parent's key.
uint64_t KeyOf(uint64_t parent, std::span<const TokenId> tokens) {
  uint64_t key = parent ^ kFnvStart;
  for (const TokenId token : tokens) key = FnvStep(key, static_cast<uint32_t>(token));
  return key ^ (key >> 32);
}

}  // namespace

PrefixTree::PrefixTree(const KvShape& shape, PagePool* pool, EvictionPolicyKind policy,
                       uint32_t max_namespaces)
    : shape_(shape),
      pool_(pool),
      num_classes_(static_cast<PageClass>(2 * shape.groups.size())),
      max_namespaces_(max_namespaces),
      nodes_(MaxNodes(shape, *pool, max_namespaces), shape.page_size),
      entries_(nodes_.max_nodes()),
      uses_(nodes_.max_nodes()),
      pages_(size_t{nodes_.max_nodes()} * num_classes_),
      policy_(MakeEvictionPolicy(policy, nodes_.max_nodes(), shape.page_size)),
      counts_(num_classes_),
      residency_(nodes_.max_nodes()) {
  for (const KvGroupShape& group : shape.groups) {
    if (group.window > 0) marked_pages_ = std::max(marked_pages_, shape.NumPages(group.window));
    marked_pages_ = std::max(marked_pages_, group.recent_pages);
  }
  for (PageClass c = 0; c < num_classes_; ++c) owners_.emplace_back(pool->num_pages(c));
  pool_->SetObserver(this);
}

void PrefixTree::SetNow(uint64_t now_ms) {
  now_ms_ = std::max(now_ms_, now_ms);
  residency_.SetNow(now_ms_);
}

StatusOr<NamespaceId> PrefixTree::AddNamespace(TenantId tenant, uint64_t key) {
  if (namespaces_.size() == max_namespaces_)
    return ResourceExhausted("{} cache namespaces, no more are possible", namespaces_.size());
  const auto ns = static_cast<NamespaceId>(namespaces_.size());
  namespaces_.push_back({nodes_.AddRoot(), tenant});
  InitRoot(ns, key);
  return ns;
}

void PrefixTree::InitRoot(NamespaceId ns, uint64_t key) {
  const auto [root, tenant] = namespaces_[ns];
  if (tenant >= left_.size()) {
    left_.resize(tenant + 1);
    num_namespaces_of_.resize(tenant + 1);
  }
  ++num_namespaces_of_[tenant];
  entries_[root] = {};
  uses_[root] = {.key = key, .ns = ns, .length = 0, .num_hits = 0, .last_used_s = now_s()};
  UpdateEvictable(root);
}

PrefixTree::List PrefixTree::RootList(NodeId root) const {
  if (entries_[root].num_locks > 0 || entries_[root].num_pins > 0) return kNone;
  return nodes_[root].num_children == 0 ? kIdle : kLeft;
}

NodeId PrefixTree::FindChild(NodeId parent, std::span<const TokenId> tokens) const {
  const NodeId id = nodes_.FindChild(parent, tokens);
  return id != kNoNode && entries_[id].is_dropped ? kNoNode : id;
}

NodeId PrefixTree::FindTail(NodeId parent, std::span<const TokenId> text) const {
  const size_t most = std::min<size_t>(text.size(), shape_.page_size - 1);
  const NodeId id = nodes_.FindLongestPrefix(parent, text.first(most));
  return id != kNoNode && entries_[id].is_dropped ? kNoNode : id;
}

uint32_t PrefixTree::LongestShared(NodeId parent, std::span<const TokenId> text) const {
  return nodes_.LongestShared(parent, text);
}

bool PrefixTree::WasEvicted(NodeId parent, std::span<const TokenId> page) const {
  return entries_[parent].evicted_child == KeyOf(uses_[parent].key, page);
}

bool PrefixTree::IsFull() const {
  return nodes_.num_nodes() + (max_namespaces_ - namespaces_.size()) >= nodes_.max_nodes();
}

NodeId PrefixTree::FindOrAdd(NodeId parent, std::span<const TokenId> tokens) {
  const NodeId known = nodes_.FindChild(parent, tokens);
  if (known != kNoNode) {
    // Computed again: no longer forgotten, if what is above is not.
    entries_[known].is_dropped = entries_[parent].is_dropped;
    UpdateUse(known);
    return known;
  }
  if (IsFull() && !EvictNode()) return kNoNode;
  const NodeId id = nodes_.AddChild(parent, tokens);
  entries_[id] = {};
  entries_[id].is_dropped = entries_[parent].is_dropped;
  uses_[id] = {.key = KeyOf(uses_[parent].key, tokens),
               .ns = uses_[parent].ns,
               .length = 0,
               .num_hits = 0,
               .last_used_s = now_s()};
  residency_.Add(id);
  policy_->Insert(
      id,
      {.key = uses_[id].key, .tenant = TenantOf(id), .is_tail = tokens.size() < shape_.page_size});
  shares_.Touch(TenantOf(id), 1);
  UpdateEvictable(id);
  UpdateEvictable(parent);
  UpdateBranch(parent);
  SetEnd(parent, false);
  UpdateUse(id);
  return id;
}

void PrefixTree::KeepPage(NodeId id, const PageRef& page) {
  const PageClass c = page.page_class();
  QUIRE_CHECK(!has_page(id, c) && !is_root(id));
  pool_->Keep(c, page.id());
  pages_[Slot(id, c)] = page.id() + 1;
  if (IsSecondary(id, c)) owners_[c][page.id()] = id + 1;
  if (pool_->num_keeps(c, page.id()) == 1) shares_.Add(TenantOf(id), pool_->stride(c));
  ++counts_[c].num_kept;
  for (uint32_t i = 0; i < NumPins(id, c); ++i) pool_->Pin(c, page.id());
}

void PrefixTree::Hit(NodeId id) {
  policy_->Hit(id);
  residency_.Use(id);
  shares_.Touch(TenantOf(id), 1);
  ++uses_[id].num_hits;
  uses_[id].last_used_s = now_s();
  entries_[id].was_retained = false;
}

void PrefixTree::Lock(NodeId id) {
  ++entries_[id].num_locks;
  UpdateEvictable(id);
}

void PrefixTree::Unlock(NodeId id) {
  QUIRE_CHECK(entries_[id].num_locks > 0);
  --entries_[id].num_locks;
  UpdateEvictable(id);
  RemoveUseless(id);
}

bool PrefixTree::IsSecondary(NodeId id, PageClass c) const {
  if (nodes_[id].num_tokens < shape_.page_size) return false;  // a tail goes as a whole
  const KvGroupShape& group = shape_.groups[c / 2];
  return group.window > 0 || (c == OpenClass(c / 2) && group.Seals(nodes_[id].depth));
}

bool PrefixTree::HasPages(NodeId id) const {
  for (PageClass c = 0; c < num_classes_; ++c)
    if (has_page(id, c)) return true;
  return false;
}

uint32_t PrefixTree::NumPins(NodeId id, PageClass c) const {
  return IsSecondary(id, c) ? entries_[id].num_near_pins : entries_[id].num_pins;
}

bool PrefixTree::HasUnusedSecondary(NodeId id) const {
  if (entries_[id].num_near_pins > 0) return false;
  for (PageClass c = 0; c < num_classes_; ++c)
    if (has_page(id, c) && IsSecondary(id, c) && pool_->num_uses(c, page(id, c)) == 0) return true;
  return false;
}

void PrefixTree::OnUnused(PageClass page_class, PageId id) {
  const NodeId owner = owners_[page_class][id];
  if (owner == 0) return;
  PutInList(owner - 1, kNone);  // it was used just now: to the end
  Place(owner - 1);
}

void PrefixTree::Place(NodeId id) {
  const Entry& entry = entries_[id];
  const List list = !HasUnusedSecondary(id) ? kNone : entry.num_marks > 0 ? kMarked : kFallen;
  if (list != entry.list) PutInList(id, list);
}

PrefixTree::Ends& PrefixTree::EndsOf(NodeId id) {
  const List list = entries_[id].list;
  return list == kLeft ? left_[TenantOf(id)] : lists_[list];
}

void PrefixTree::PutInList(NodeId id, List list) {
  Entry& entry = entries_[id];
  if (entry.list != kNone) {
    Ends& ends = EndsOf(id);
    (entry.previous == kNoNode ? ends.first : entries_[entry.previous].next) = entry.next;
    (entry.next == kNoNode ? ends.last : entries_[entry.next].previous) = entry.previous;
  }
  entry.list = list;
  if (list == kNone) return;
  Ends& ends = EndsOf(id);
  entry.previous = ends.last;
  entry.next = kNoNode;
  (ends.last == kNoNode ? ends.first : entries_[ends.last].next) = id;
  ends.last = id;
}

bool PrefixTree::IsEvictable(NodeId id) const {
  const Entry& entry = entries_[id];
  return !is_root(id) && nodes_[id].num_children == 0 && entry.num_locks == 0 &&
         entry.num_pins == 0;
}

void PrefixTree::UpdateEvictable(NodeId id) {
  Entry& entry = entries_[id];
  if (is_root(id)) {
    if (const List list = RootList(id); list != entry.list) PutInList(id, list);
    return;
  }
  const bool is = IsEvictable(id);
  if (is == entry.is_evictable) return;
  entry.is_evictable = is;
  policy_->SetEvictable(id, is);
  shares_.Changed(TenantOf(id));
}

void PrefixTree::UpdateUse(NodeId id) {
  const PrefixNode& node = nodes_[id];
  const bool is_listed = !node.is_root() && !entries_[id].is_dropped &&
                         (node.num_children != 1 || entries_[id].num_own_pins > 0);
  uses_[id].length = is_listed ? LengthOf(id) : 0;
}

void PrefixTree::UpdateBranch(NodeId id) {
  UpdateUse(id);
  const bool is = nodes_[id].num_children > 1;
  if (is == entries_[id].is_branch) return;
  entries_[id].is_branch = is;
  AddMark(id, is ? 1 : -1);
}

void PrefixTree::SetEnd(NodeId id, bool is_end) {
  if (is_end == entries_[id].is_end) return;
  entries_[id].is_end = is_end;
  AddMark(id, is_end ? 1 : -1);
}

void PrefixTree::MarkEnd(NodeId id) {
  uses_[id].last_used_s = now_s();
  if (nodes_[id].num_children == 0) SetEnd(id, true);
}

void PrefixTree::AddMark(NodeId id, int change) {
  for (uint32_t i = 0; i <= marked_pages_ && !is_root(id); ++i, id = parent(id)) {
    Entry& entry = entries_[id];
    entry.num_marks += static_cast<uint32_t>(change);
    if (entry.num_marks == (change > 0 ? 1u : 0u)) Place(id);
  }
}

void PrefixTree::ChangePins(NodeId id, int change, bool expired) {
  entries_[id].num_own_pins += static_cast<uint32_t>(change);
  UpdateUse(id);
  AddMark(id, change);
  uint32_t distance = 0;
  for (; !is_root(id); id = parent(id), ++distance) {
    Entry& entry = entries_[id];
    const bool is_near = distance <= marked_pages_;
    entry.num_pins += static_cast<uint32_t>(change);
    entry.was_retained = expired && entry.num_pins == 0;
    if (is_near) entry.num_near_pins += static_cast<uint32_t>(change);
    for (PageClass c = 0; c < num_classes_; ++c) {
      if (!has_page(id, c) || (!is_near && IsSecondary(id, c))) continue;
      if (change > 0)
        pool_->Pin(c, page(id, c));
      else
        pool_->Unpin(c, page(id, c));
    }
    UpdateEvictable(id);
    Place(id);
  }
  entries_[id].num_pins += static_cast<uint32_t>(change);  // the root
  UpdateEvictable(id);
}

void PrefixTree::Pin(NodeId id) { ChangePins(id, 1, /*expired=*/false); }

void PrefixTree::Unpin(NodeId id, bool expired) {
  QUIRE_CHECK(entries_[id].num_own_pins > 0);
  ChangePins(id, -1, expired);
  RemoveUseless(id);
}

size_t PrefixTree::PinCost(NodeId id) const {
  size_t bytes = 0;
  for (uint32_t distance = 0; !is_root(id); id = parent(id), ++distance)
    for (PageClass c = 0; c < num_classes_; ++c)
      if (has_page(id, c) && (distance <= marked_pages_ || !IsSecondary(id, c)) &&
          !pool_->is_pinned(c, page(id, c)))
        bytes += pool_->stride(c);
  return bytes;
}

}  // namespace quire
