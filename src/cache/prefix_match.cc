#include "cache/prefix_match.h"

#include <algorithm>
#include <vector>

namespace quire {
namespace {

// The pages of each class that lie without a gap before the place that the walk has reached.
class Runs {
 public:
  Runs(const PrefixTree& tree, const KvShape& shape, uint32_t prompt_len)
      : tree_(tree),
        shape_(shape),
        prompt_len_(prompt_len),
        read_(shape.groups.size()),
        open_(shape.groups.size()) {}

  // The walk goes through `node`, the page after the last one.
  void Add(NodeId node) {
    for (uint32_t g = 0; g < shape_.num_groups(); ++g) {
      const PageClass c = shape_.groups[g].Seals(num_pages_) ? SealedClass(g) : OpenClass(g);
      read_[g] = tree_.has_page(node, c) ? read_[g] + 1 : 0;
      open_[g] = tree_.has_page(node, OpenClass(g)) ? open_[g] + 1 : 0;
    }
    ++num_pages_;
  }

  // With these pages and `tail_len` tokens after them.
  bool AreUsable(uint32_t tail_len) const {
    const uint32_t length = num_pages_ * shape_.page_size + tail_len;
    const uint32_t next = std::min(length, prompt_len_ - 1);
    for (uint32_t g = 0; g < shape_.num_groups(); ++g) {
      const KvGroupShape& group = shape_.groups[g];
      const uint32_t first = group.FirstPage(next, shape_.page_size);
      const uint32_t page = next / shape_.page_size;  // of the next position
      if (num_pages_ > first && read_[g] < num_pages_ - first) return false;
      const uint32_t open_from = page > group.recent_pages ? page - group.recent_pages : 0;
      const uint32_t first_open = std::max(open_from, group.has_sealed() ? group.sink_pages : 0);
      if (group.has_sealed() && num_pages_ > first_open && open_[g] < num_pages_ - first_open)
        return false;
    }
    return true;
  }

 private:
  const PrefixTree& tree_;
  const KvShape& shape_;
  const uint32_t prompt_len_;
  uint32_t num_pages_ = 0;
  std::vector<uint32_t> read_, open_;  // [group]: in the form that later pages read; open
};

MatchStop WhyNotMore(const PrefixTree& tree, NodeId last, std::span<const TokenId> rest,
                     uint32_t num_pages, uint32_t shared, uint32_t page_size) {
  if (num_pages == 0 && tree.nodes()[last].num_children == 0) return MatchStop::kNamespace;
  if (rest.size() >= page_size && tree.WasEvicted(last, rest.first(page_size)))
    return MatchStop::kEvicted;
  if (shared == rest.size() || (num_pages == 0 && shared > 0)) return MatchStop::kPageRounding;
  return MatchStop::kDiverged;
}

}  // namespace

std::string_view MatchStopName(MatchStop stop) {
  switch (stop) {
    case MatchStop::kWhole:
      return "whole";
    case MatchStop::kDiverged:
      return "diverged";
    case MatchStop::kPageRounding:
      return "page_rounding";
    case MatchStop::kEvicted:
      return "evicted";
    case MatchStop::kWindow:
      return "window";
    case MatchStop::kNamespace:
      return "namespace";
  }
  return "?";
}

PrefixMatch FindPrefix(const PrefixTree& tree, const KvShape& shape, NodeId root,
                       std::span<const TokenId> tokens) {
  const uint32_t page_size = shape.page_size;
  const auto prompt_len = static_cast<uint32_t>(tokens.size());
  Runs runs(tree, shape, prompt_len);
  PrefixMatch match{.node = root};
  NodeId last = root;
  uint32_t num_pages = 0;
  const auto rest = [&] { return tokens.subspan(size_t{num_pages} * page_size); };
  while (rest().size() >= page_size) {
    const NodeId child = tree.FindChild(last, rest().first(page_size));
    if (child == kNoNode) break;
    last = child;
    ++num_pages;
    runs.Add(child);
    if (!runs.AreUsable(0)) continue;
    match.node = child;
    match.length = num_pages * page_size;
  }
  const uint32_t whole_len = num_pages * page_size;
  uint32_t reachable = whole_len;  // if no window were in the way
  const NodeId tail = rest().empty() ? kNoNode : tree.FindTail(last, rest());
  if (tail != kNoNode) {
    const uint32_t tail_len = tree.nodes()[tail].num_tokens;
    reachable += tail_len;
    if (runs.AreUsable(tail_len)) {
      match.node = last;
      match.tail = tail;
      match.length = reachable;
    }
  }
  const uint32_t shared = rest().empty() ? 0 : tree.LongestShared(last, rest());
  match.num_shared = whole_len + shared;
  // A page-wise codec computes the last page of a prompt again: nothing is missing.
  const bool is_last_page = reachable == prompt_len && match.length + page_size >= prompt_len;
  if (reachable == prompt_len && (match.length == reachable || is_last_page))
    match.stop = MatchStop::kWhole;
  else if (match.length < reachable)
    match.stop = MatchStop::kWindow;
  else
    match.stop = WhyNotMore(tree, last, rest(), num_pages, shared, page_size);
  return match;
}

}  // namespace quire
