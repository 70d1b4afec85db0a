#include "schedule/start_need.h"

#include <algorithm>

#include "cache/kv_need.h"

namespace quire {
namespace {

// Pages of a match that SequencePages uses from its start on, and nobody uses now.
size_t UnusedBytes(const KvCache& cache, const PrefixMatch& match, uint32_t begin) {
  const KvShape& shape = cache.shape();
  const PrefixTree& tree = cache.tree();
  const PagePool& pool = cache.pool();
  size_t bytes = 0;
  const auto add = [&](NodeId node, PageClass c) {
    if (tree.has_page(node, c) && pool.num_uses(c, tree.page(node, c)) == 0)
      bytes += pool.stride(c);
  };
  for (NodeId node = match.node; !tree.is_root(node); node = tree.parent(node)) {
    const uint32_t page = tree.nodes()[node].depth;
    for (uint32_t g = 0; g < shape.num_groups(); ++g) {
      const KvGroupShape& group = shape.groups[g];
      if (page < group.FirstPage(begin, shape.page_size)) continue;
      if (group.StaysOpen(page, begin / shape.page_size)) add(node, OpenClass(g));
      if (group.Seals(page)) add(node, SealedClass(g));
    }
  }
  for (uint32_t g = 0; match.tail != kNoNode && g < shape.num_groups(); ++g)
    add(match.tail, OpenClass(g));
  return bytes;
}

}  // namespace

StartNeed NeedWithMatch(const KvCache& cache, NamespaceId ns, std::span<const TokenId> tokens) {
  const PrefixMatch match = cache.Find(ns, tokens);
  StartNeed need;
  need.length = match.length;
  need.begin = std::min(match.length, static_cast<uint32_t>(tokens.size()) - 1);
  need.node = match.node;
  if (match.length > 0) need.match_bytes = UnusedBytes(cache, match, need.begin);
  return need;
}

StartNeed NeedWithoutMatch(const KvCache& cache, NamespaceId ns) {
  return {.node = cache.tree().root(ns)};
}

size_t FirstStepBytes(const KvShape& shape, const StartNeed& need, uint32_t end) {
  if (end <= need.length) return 0;
  // The match's last page is the tree's too if it has free slots: it is copied.
  const size_t copy = need.length % shape.page_size != 0 ? OpenPageBytes(shape) : 0;
  return copy + StepBytes(shape, need.length, end);
}

size_t GrowthBytes(const KvShape& shape, uint32_t length, uint32_t end) {
  const size_t held = HeldBytes(shape, length), wanted = HeldBytes(shape, end);
  return wanted > held ? wanted - held : 0;
}

size_t OpenPageBytes(const KvShape& shape) {
  size_t bytes = 0;
  for (const KvGroupShape& group : shape.groups) bytes += PageStride(group.open_page_bytes);
  return bytes;
}

}  // namespace quire
