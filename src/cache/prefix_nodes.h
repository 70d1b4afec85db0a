// PrefixNodes: the nodes of the prefix tree, and where each one's children are found.
//
// A node is one page of tokens that follows the pages of its parent: page_size of them, or fewer in
// a tail, the open page that an ended sequence left. The children of a node stand in the order of
// their tokens (lexicographic, a shorter one first), in a treap, so that one of them, and the ones
// that share most with a given text, are found in O(log children) comparisons. Tokens are compared
// themselves: no hash is trusted.
//
// Not here: pages, locks, what may be removed (prefix_tree.h).
//
// Threading: not thread-safe; owned by the engine thread.
// Memory: for max_nodes nodes, committed as they are touched. No call allocates.
// Paper: Seidel and Aragon, Randomized search trees, 1996.
//
// Invariants (CheckInvariants(), prefix_nodes_test.cc):
//   [cache.nodes.1] A node is free or has a place under its parent, never both; num_children
//   counts. [cache.nodes.2] Children are in strictly rising order.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/lazy_array.h"
#include "base/status.h"
#include "cache/eviction_policy.h"

namespace quire {

struct PrefixNode {
  NodeId parent;
  NodeId children;     // the treap's top, kNoNode
  NodeId left, right;  // in the parent's treap
  uint32_t num_children;
  uint32_t num_tokens;
  uint32_t depth;  // pages before it on its path
  bool is_free;
  bool is_root() const { return parent == kNoNode; }
};

class PrefixNodes {
 public:
  PrefixNodes(uint32_t max_nodes, uint32_t page_size);

  uint32_t max_nodes() const { return static_cast<uint32_t>(nodes_.size()); }
  uint32_t num_nodes() const { return num_nodes_; }
  bool is_full() const { return num_nodes_ == max_nodes(); }
  uint32_t num_touched() const { return num_touched_; }  // all ids in use are below
  const PrefixNode& operator[](NodeId id) const { return nodes_[id]; }
  std::span<const TokenId> tokens(NodeId id) const {
    return {&tokens_[size_t{id} * page_size_], nodes_[id].num_tokens};
  }

  // Both require !is_full(). A root is a node without tokens and parent.
  NodeId AddRoot();
  // Requires: 1 to page_size tokens that no child of `parent` has.
  NodeId AddChild(NodeId parent, std::span<const TokenId> tokens);
  // Requires: no children.
  void Remove(NodeId id);

  // The child with exactly these tokens, or kNoNode.
  NodeId FindChild(NodeId parent, std::span<const TokenId> tokens) const;
  // The longest child that `text` begins with, or kNoNode.
  NodeId FindLongestPrefix(NodeId parent, std::span<const TokenId> text) const;
  // The most tokens from its start on that `text` shares with a child.
  uint32_t LongestShared(NodeId parent, std::span<const TokenId> text) const;

  // In their order. Allocates: for walks over whole trees only.
  void AppendChildren(NodeId parent, std::vector<NodeId>* to) const;

  Status CheckInvariants() const;

 private:
  struct Neighbours {
    NodeId last_not_after = kNoNode;  // the last child that is not after the text
    NodeId first_after = kNoNode;
  };
  Neighbours Find(NodeId parent, std::span<const TokenId> text) const;
  NodeId New();
  void Unlink(NodeId id);
  uint32_t Shared(NodeId id, std::span<const TokenId> text) const;
  bool IsBefore(NodeId a, std::span<const TokenId> text) const;
  void Split(NodeId top, std::span<const TokenId> text, NodeId* before, NodeId* rest);
  NodeId Merge(NodeId before, NodeId after);
  Status CheckTreap(NodeId top, NodeId parent, NodeId* last, uint32_t* count) const;

  uint32_t page_size_;
  LazyArray<PrefixNode> nodes_;
  LazyArray<TokenId> tokens_;  // [max_nodes, page_size]
  uint32_t num_nodes_ = 0;
  uint32_t num_touched_ = 0;     // nodes from here on were never used
  NodeId first_free_ = kNoNode;  // of those that were; linked by `parent`
};

}  // namespace quire
