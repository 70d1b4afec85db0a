// The prefix tree: which pages there are for which tokens, who needs them, and which go first.
//
// A radix tree over token ids, page by page (cache/prefix_nodes.h), with one root for each
// namespace. A node keeps the pages of its tokens, one a page class at most (PagePool::Keep). Pages
// of running sequences are in it as soon as they are full, so requests that come later share them.
//
// What may go. A sequence locks the deepest node it goes through, which protects the nodes above: a
// node is evictable if it has no children, no lock and no pin, and the policy chooses among those.
// Pages that a node can lose without being useless are secondary: those of window groups (and open
// pages that recent_pages kept). They go by themselves:
//   1. secondary pages that nobody uses and that stand at no mark, least recently used first;
//   2. evictable nodes, as the policy says, with all their pages;
//   3. secondary pages at marks, least recently used first.
// Marks stand where a prefix is likely to be used again: nodes with two children or more, ends of
// sequences, pins; with the nodes before them that the widest window sees. A pin holds the pages
// that a match of its prefix reads: all primary ones, and secondary ones from its mark on.
// An evictable node goes at once when it has lost its last page, or when it was dropped. Each page
// that goes is counted with the reason.
//
// Namespaces. A root that nobody locks, pins or has nodes below is idle, and its place is given to
// a new key when there are no others (ReuseNamespace). A caller that stores a NamespaceId locks its
// root (KvCache::Hold).
//
// What is listed (cache/prefix_list.h): nodes where a text ends for now, where texts part, and
// where a pin stands, unless they were dropped. uses() has a small record of each node, so that a
// look at all of them reads memory in one line.
//
// Not here: how a prompt is matched (prefix_match.h), whose budget is short (kv_cache.h).
//
// Threading: not thread-safe; owned by the engine thread.
// Cost: a call touches one node, or as many as a window has pages; Pin and Unpin the whole path,
// Drop all that goes. Nothing allocates but AddNamespace and Drop.
//
// Invariants (CheckInvariants(), prefix_tree_test.cc):
//   [cache.tree.1] The pages of all nodes are the keeps of the pool.
//   [cache.tree.2] The policy holds a node evictable if and only if it has no child, lock or pin;
//                  such a node has a page and is not dropped.
//   [cache.tree.3] Every kept page without use and pin can be reached by eviction: its node is
//                  evictable, or has only nodes below it that become so, or is in a list of 1 or 3.
//   [cache.tree.4] A tenant's bytes are those of the pages its namespaces keep, each counted once.
//   [cache.tree.5] By class: pages kept since the start - evicted ones by all reasons = kept now.
//   [cache.tree.6] A use's length is its node's if the node is listed, else 0.
//   [cache.tree.7] A root is in the list of idle ones or in its tenant's if and only if it is so.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/lazy_array.h"
#include "cache/evict_reason.h"
#include "cache/eviction_policy.h"
#include "cache/kv_shape.h"
#include "cache/page_pool.h"
#include "cache/page_residency.h"
#include "cache/prefix_nodes.h"
#include "cache/tenant_shares.h"

namespace quire {

using NamespaceId = uint32_t;

// What has been seen of a node's prefix: all tokens from the root to its end.
struct PrefixUse {
  uint64_t key;  // of namespace key and tokens: a name, never trusted; 0: free id
  NamespaceId ns;
  uint32_t length;       // tokens, if the node is listed; else 0
  uint32_t num_hits;     // requests whose match went through it
  uint32_t last_used_s;  // the last of them, or its end; SetNow's clock
};

class PrefixTree final : public UnusedPageObserver {
 public:
  // Both must outlive it.
  PrefixTree(const KvShape& shape, PagePool* pool, EvictionPolicyKind policy,
             uint32_t max_namespaces);
  ~PrefixTree() { pool_->SetObserver(nullptr); }

  // `key`: from here on the keys of its prefixes go on. kResourceExhausted when there are too many.
  StatusOr<NamespaceId> AddNamespace(TenantId tenant, uint64_t key = 0);
  // Gives the place of a namespace that nobody locks or pins to another key: of the one that is
  // idle longest, or of the tenant with the most namespaces that which was left longest ago, with
  // all that it has. kResourceExhausted if there is none.
  StatusOr<NamespaceId> ReuseNamespace(TenantId tenant, uint64_t key);
  NodeId root(NamespaceId ns) const { return namespaces_[ns].root; }

  TenantId tenant_of(NamespaceId ns) const { return namespaces_[ns].tenant; }

  const PrefixNodes& nodes() const { return nodes_; }
  NodeId parent(NodeId id) const { return nodes_[id].parent; }
  bool is_root(NodeId id) const { return nodes_[id].is_root(); }
  bool is_locked(NodeId id) const { return entries_[id].num_locks > 0; }

  // A child that may be matched, or kNoNode.
  NodeId FindChild(NodeId parent, std::span<const TokenId> tokens) const;
  NodeId FindTail(NodeId parent, std::span<const TokenId> text) const;
  // The most tokens that `text` shares with any child; whether the child that `text` begins with
  // was evicted of late (a hint: by hash).
  uint32_t LongestShared(NodeId parent, std::span<const TokenId> text) const;
  bool WasEvicted(NodeId parent, std::span<const TokenId> page) const;

  // The child with these tokens, made if it is not there, in place of an evictable node if there
  // are too many; kNoNode if there is none. Requires: `parent` is a root or locked.
  NodeId FindOrAdd(NodeId parent, std::span<const TokenId> tokens);
  bool has_page(NodeId id, PageClass c) const { return pages_[Slot(id, c)] != 0; }
  PageId page(NodeId id, PageClass c) const { return pages_[Slot(id, c)] - 1; }
  PageRef Use(NodeId id, PageClass c) { return pool_->Use(c, page(id, c)); }
  // The node keeps this page from now on. Requires: it has none of its class.
  void KeepPage(NodeId id, const PageRef& page);

  void Hit(NodeId id);  // root first; not for roots
  void Lock(NodeId id);
  void Unlock(NodeId id);
  // A sequence ended here.
  void MarkEnd(NodeId id);

  // Keeps the prefix that ends with this node, as a match would use it, until Unpin. `expired`: its
  // time has come (EvictReason::kTtl).
  void Pin(NodeId id);
  void Unpin(NodeId id, bool expired = false);
  // What Pin() would add to the bytes of pages with a pin.
  size_t PinCost(NodeId id) const;

  // Forgets `id`, a namespace's root or a node, and all below; what runs or is pinned goes
  // with the last of them. Matches see none of it from now on.
  void Drop(NodeId id, EvictReason reason = EvictReason::kDropped);
  bool is_dropped(NodeId id) const { return entries_[id].is_dropped; }

  // Gives up one page or node; false if nothing is evictable.
  bool EvictOne();

  TenantShares& shares() { return shares_; }
  size_t tenant_bytes(TenantId tenant) const { return shares_.cached_bytes(tenant); }
  // An earlier time than before changes nothing.
  void SetNow(uint64_t now_ms);
  const ResidencyTimes& residency() const { return residency_.times(); }
  std::span<const PrefixUse> uses() const {  // [NodeId]
    return std::span<const PrefixUse>(uses_).first(nodes_.num_touched());
  }
  bool has_own_pin(NodeId id) const { return entries_[id].num_own_pins > 0; }
  uint32_t num_locks(NodeId id) const { return entries_[id].num_locks; }
  uint32_t LengthOf(NodeId id) const {  // tokens of its prefix
    const PrefixNode& node = nodes_[id];
    return node.is_root() ? 0 : node.depth * shape_.page_size + node.num_tokens;
  }
  size_t num_namespaces() const { return namespaces_.size(); }
  TenantId TenantOf(NodeId id) const { return namespaces_[uses_[id].ns].tenant; }
  // Pages before and with a mark that the widest window sees.
  uint32_t marked_pages() const { return marked_pages_; }
  const EvictionCounts& eviction_counts(PageClass c) const { return counts_[c]; }
  uint64_t num_evicted_nodes() const { return num_evicted_nodes_; }
  uint64_t num_evicted_secondary_pages() const { return num_evicted_secondary_; }

  Status CheckInvariants() const;

 private:
  enum List : uint8_t { kNone, kFallen, kMarked, kIdle, kLeft };  // the last two: roots
  struct Entry {
    uint32_t num_locks, num_marks;
    uint32_t num_pins;       // at this node or below
    uint32_t num_near_pins;  // those of them whose mark is here: they hold secondary pages too
    uint32_t num_own_pins;   // at this node
    NodeId previous, next;   // in its list
    uint64_t evicted_child;  // the key of the child that was evicted last
    List list;
    bool is_evictable, is_end, is_branch, is_dropped;
    bool was_retained;  // until a time that has come; not used since
  };
  struct Ends {
    NodeId first = kNoNode, last = kNoNode;
  };
  struct Namespace {
    NodeId root;
    TenantId tenant;
  };

  uint32_t now_s() const { return static_cast<uint32_t>(now_ms_ / 1000); }
  bool IsFull() const;  // but for the roots to come
  void InitRoot(NamespaceId ns, uint64_t key);
  List RootList(NodeId root) const;
  Ends& EndsOf(NodeId id);
  void OnUnused(PageClass page_class, PageId id) override;
  size_t Slot(NodeId id, PageClass c) const { return size_t{id} * num_classes_ + c; }
  bool IsSecondary(NodeId id, PageClass c) const;
  bool HasUnusedSecondary(NodeId id) const;
  bool HasPages(NodeId id) const;
  bool IsEvictable(NodeId id) const;
  uint32_t NumPins(NodeId id, PageClass c) const;  // of this page
  void UpdateEvictable(NodeId id);
  void UpdateBranch(NodeId id);
  void UpdateUse(NodeId id);
  void SetEnd(NodeId id, bool is_end);
  void AddMark(NodeId id, int change);
  void ChangePins(NodeId id, int change, bool expired);
  void Place(NodeId id);  // into the list it belongs to
  void PutInList(NodeId id, List list);
  void DropPage(NodeId id, PageClass c, EvictReason reason);
  uint32_t DropSecondary(NodeId id, EvictReason reason);
  void Remove(NodeId id, EvictReason reason);
  // Removes evictable nodes that are dropped or have no page, from `id` up.
  void RemoveUseless(NodeId id);
  bool EvictNode();
  bool HasLocks(NodeId root) const;
  NodeId RootToReuse();  // idle
  Status CheckNode(NodeId id) const;
  Status CheckRoots() const;
  Status CheckPages(std::span<const NodeId> order) const;
  Status CheckReach(std::span<const NodeId> order) const;

  const KvShape shape_;
  PagePool* const pool_;
  const PageClass num_classes_;
  const uint32_t max_namespaces_;
  uint32_t marked_pages_ = 0;  // pages before and with a mark that the widest window sees
  PrefixNodes nodes_;
  LazyArray<Entry> entries_;
  LazyArray<PrefixUse> uses_;
  LazyArray<PageId> pages_;                // [max_nodes, page classes]: id + 1, or 0
  std::vector<LazyArray<NodeId>> owners_;  // [page class][page]: node + 1 of a secondary page
  std::unique_ptr<EvictionPolicy> policy_;
  std::array<Ends, 4> lists_;
  std::vector<Namespace> namespaces_;
  std::vector<Ends> left_;                   // [tenant]: its roots in list kLeft
  std::vector<uint32_t> num_namespaces_of_;  // [tenant]
  std::vector<EvictionCounts> counts_;       // [page class]
  uint64_t now_ms_ = 0;
  PageResidency residency_;
  TenantShares shares_;
  uint64_t num_evicted_nodes_ = 0, num_evicted_secondary_ = 0;
};

}  // namespace quire
