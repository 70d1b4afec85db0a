#include "cache/node_heaps.h"

#include <utility>

namespace quire {

void NodeHeaps::Insert(NodeId node, uint64_t key, NodeId* root) {
  entries_[node] = {.key = key, .first_child = kNoNode, .next = kNoNode, .previous = kNoNode};
  *root = *root == kNoNode ? node : Meld(*root, node);
}

void NodeHeaps::Erase(NodeId node, NodeId* root) {
  const NodeId children = MeldChildren(node);
  if (node == *root) {
    *root = children;
    return;
  }
  const Entry& entry = entries_[node];
  if (entries_[entry.previous].first_child == node)
    entries_[entry.previous].first_child = entry.next;
  else
    entries_[entry.previous].next = entry.next;
  if (entry.next != kNoNode) entries_[entry.next].previous = entry.previous;
  if (children != kNoNode) *root = Meld(*root, children);
}

NodeId NodeHeaps::Meld(NodeId a, NodeId b) {
  if (std::pair(entries_[b].key, b) < std::pair(entries_[a].key, a)) std::swap(a, b);
  Entry& top = entries_[a];
  Entry& below = entries_[b];
  below.previous = a;
  below.next = top.first_child;
  if (below.next != kNoNode) entries_[below.next].previous = b;
  top.first_child = b;
  top.next = top.previous = kNoNode;
  return a;
}

NodeId NodeHeaps::MeldChildren(NodeId node) {
  // Two by two from the left, the pairs in a list by `next`, last pair first; then all into one.
  NodeId pairs = kNoNode;
  NodeId child = entries_[node].first_child;
  while (child != kNoNode) {
    const NodeId second = entries_[child].next;
    const NodeId rest = second == kNoNode ? kNoNode : entries_[second].next;
    const NodeId pair = second == kNoNode ? child : Meld(child, second);
    entries_[pair].next = pairs;
    pairs = pair;
    child = rest;
  }
  if (pairs == kNoNode) return kNoNode;
  NodeId root = pairs;
  pairs = entries_[root].next;
  while (pairs != kNoNode) {
    const NodeId rest = entries_[pairs].next;
    root = Meld(root, pairs);
    pairs = rest;
  }
  entries_[root].next = entries_[root].previous = kNoNode;
  return root;
}

}  // namespace quire
