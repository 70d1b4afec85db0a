// Min-heaps of nodes that share one array: a node is in at most one of them at a time.
//
// Pairing heaps with links by id: a heap is its root, kept by the caller, so that there can be as
// many as there are tenants without memory for each. The node with the smallest key is the root;
// of equal keys the smaller id.
//
// Cost: Insert O(1), Erase O(log nodes) amortised; nothing allocates.
// Paper: Fredman, Sedgewick, Sleator, Tarjan, The pairing heap, Algorithmica 1986.
#pragma once

#include <cstdint>

#include "base/lazy_array.h"
#include "cache/eviction_policy.h"

namespace quire {

class NodeHeaps {
 public:
  explicit NodeHeaps(uint32_t max_nodes) : entries_(max_nodes) {}

  // *root: the heap's root, kNoNode if it is empty. Requires: the node is in no heap.
  void Insert(NodeId node, uint64_t key, NodeId* root);

  // Requires: the node is in this heap.
  void Erase(NodeId node, NodeId* root);

 private:
  struct Entry {
    uint64_t key;
    NodeId first_child, next;
    NodeId previous;  // the sibling before, or of a first child the parent
  };

  // The root of two heaps made one. Requires: both are roots.
  NodeId Meld(NodeId a, NodeId b);
  NodeId MeldChildren(NodeId node);

  LazyArray<Entry> entries_;  // [max_nodes]
};

}  // namespace quire
