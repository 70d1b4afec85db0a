#include "cache/prefix_nodes.h"

#include <algorithm>

#include "base/check.h"
#include "base/errors.h"

namespace quire {
namespace {

// A treap's priority: fixed by the id, spread by a mix (the finaliser of splitmix64).
uint64_t Priority(NodeId id) {
  uint64_t x = (uint64_t{id} + 1) * 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

}  // namespace

PrefixNodes::PrefixNodes(uint32_t max_nodes, uint32_t page_size)
    : page_size_(page_size), nodes_(max_nodes), tokens_(size_t{max_nodes} * page_size) {}

NodeId PrefixNodes::New() {
  QUIRE_CHECK(!is_full());
  NodeId id = first_free_;
  if (id != kNoNode)
    first_free_ = nodes_[id].parent;
  else
    id = num_touched_++;
  ++num_nodes_;
  nodes_[id] = {.parent = kNoNode,
                .children = kNoNode,
                .left = kNoNode,
                .right = kNoNode,
                .num_children = 0,
                .num_tokens = 0,
                .depth = 0,
                .is_free = false};
  return id;
}

NodeId PrefixNodes::AddRoot() { return New(); }

NodeId PrefixNodes::AddChild(NodeId parent, std::span<const TokenId> tokens) {
  QUIRE_CHECK(!tokens.empty() && tokens.size() <= page_size_);
  const NodeId id = New();
  PrefixNode& node = nodes_[id];
  PrefixNode& above = nodes_[parent];
  node.parent = parent;
  node.num_tokens = static_cast<uint32_t>(tokens.size());
  node.depth = above.is_root() ? 0 : above.depth + 1;
  std::copy(tokens.begin(), tokens.end(), tokens_.data() + size_t{id} * page_size_);
  NodeId before, rest;
  Split(above.children, tokens, &before, &rest);
  above.children = Merge(Merge(before, id), rest);
  ++above.num_children;
  return id;
}

void PrefixNodes::Unlink(NodeId id) {
  PrefixNode& node = nodes_[id];
  if (node.is_root()) return;
  PrefixNode& above = nodes_[node.parent];
  NodeId* link = &above.children;
  const auto text = tokens(id);
  while (*link != id) {
    QUIRE_CHECK(*link != kNoNode);
    link = IsBefore(*link, text) ? &nodes_[*link].right : &nodes_[*link].left;
  }
  *link = Merge(node.left, node.right);
  --above.num_children;
}

void PrefixNodes::Remove(NodeId id) {
  QUIRE_CHECK(!nodes_[id].is_free && nodes_[id].num_children == 0);
  Unlink(id);
  nodes_[id].is_free = true;
  nodes_[id].parent = first_free_;
  first_free_ = id;
  --num_nodes_;
}

uint32_t PrefixNodes::Shared(NodeId id, std::span<const TokenId> text) const {
  const auto own = tokens(id);
  return static_cast<uint32_t>(std::ranges::mismatch(own, text).in1 - own.begin());
}

bool PrefixNodes::IsBefore(NodeId a, std::span<const TokenId> text) const {
  return std::ranges::lexicographical_compare(tokens(a), text);
}

PrefixNodes::Neighbours PrefixNodes::Find(NodeId parent, std::span<const TokenId> text) const {
  Neighbours found;
  for (NodeId id = nodes_[parent].children; id != kNoNode;) {
    const bool is_after = std::ranges::lexicographical_compare(text, tokens(id));
    (is_after ? found.first_after : found.last_not_after) = id;
    id = is_after ? nodes_[id].left : nodes_[id].right;
  }
  return found;
}

NodeId PrefixNodes::FindChild(NodeId parent, std::span<const TokenId> text) const {
  const NodeId id = Find(parent, text).last_not_after;
  return id != kNoNode && std::ranges::equal(tokens(id), text) ? id : kNoNode;
}

NodeId PrefixNodes::FindLongestPrefix(NodeId parent, std::span<const TokenId> text) const {
  text = text.first(std::min<size_t>(text.size(), page_size_));
  while (!text.empty()) {
    const NodeId id = Find(parent, text).last_not_after;
    if (id == kNoNode) return kNoNode;
    const uint32_t shared = Shared(id, text);
    if (shared == nodes_[id].num_tokens) return id;
    text = text.first(shared);  // a prefix of the text before `id` shares no more than that
  }
  return kNoNode;
}

uint32_t PrefixNodes::LongestShared(NodeId parent, std::span<const TokenId> text) const {
  const Neighbours found = Find(parent, text);
  uint32_t shared = 0;
  for (const NodeId id : {found.last_not_after, found.first_after})
    if (id != kNoNode) shared = std::max(shared, Shared(id, text));
  return shared;
}

void PrefixNodes::AppendChildren(NodeId parent, std::vector<NodeId>* to) const {
  const auto walk = [&](auto&& self, NodeId top) -> void {
    if (top == kNoNode) return;
    self(self, nodes_[top].left);
    to->push_back(top);
    self(self, nodes_[top].right);
  };
  walk(walk, nodes_[parent].children);
}

void PrefixNodes::Split(NodeId top, std::span<const TokenId> text, NodeId* before, NodeId* rest) {
  if (top == kNoNode) {
    *before = *rest = kNoNode;
  } else if (IsBefore(top, text)) {
    *before = top;
    Split(nodes_[top].right, text, &nodes_[top].right, rest);
  } else {
    *rest = top;
    Split(nodes_[top].left, text, before, &nodes_[top].left);
  }
}

NodeId PrefixNodes::Merge(NodeId before, NodeId after) {
  if (before == kNoNode) return after;
  if (after == kNoNode) return before;
  if (Priority(before) > Priority(after)) {
    nodes_[before].right = Merge(nodes_[before].right, after);
    return before;
  }
  nodes_[after].left = Merge(before, nodes_[after].left);
  return after;
}

Status PrefixNodes::CheckTreap(NodeId top, NodeId parent, NodeId* last, uint32_t* count) const {
  if (top == kNoNode) return OkStatus();
  const PrefixNode& node = nodes_[top];
  QUIRE_RETURN_IF_ERROR(CheckTreap(node.left, parent, last, count));
  if (node.is_free || node.parent != parent)
    return Internal("[cache.nodes.1] node {} is among the children of {} and not its child", top,
                    parent);
  if (*last != kNoNode && !IsBefore(*last, tokens(top)))
    return Internal("[cache.nodes.2] node {} stands after {}", top, *last);
  *last = top;
  ++*count;
  return CheckTreap(node.right, parent, last, count);
}

Status PrefixNodes::CheckInvariants() const {
  uint32_t num_used = 0, num_linked = 0, num_children = 0;
  for (NodeId id = 0; id < num_touched_; ++id) {
    if (nodes_[id].is_free) continue;
    ++num_used;
    num_linked += nodes_[id].is_root() ? 0 : 1;
    NodeId last = kNoNode;
    uint32_t count = 0;
    QUIRE_RETURN_IF_ERROR(CheckTreap(nodes_[id].children, id, &last, &count));
    if (count != nodes_[id].num_children)
      return Internal("[cache.nodes.1] node {} has {} children, {} counted", id, count,
                      nodes_[id].num_children);
    num_children += count;
  }
  if (num_used != num_nodes_ || num_linked != num_children)
    return Internal("[cache.nodes.1] {} nodes, {} counted; {} have a parent, which have {}",
                    num_used, num_nodes_, num_linked, num_children);
  return OkStatus();
}

}  // namespace quire
