#include "cache/prefix_list.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "cache/kv_cache.h"

namespace quire {
namespace {

constexpr uint32_t kMostListed = 10'000;

// The larger, the earlier in the list.
uint32_t RankOf(const PrefixUse& use, PrefixOrder order) {
  switch (order) {
    case PrefixOrder::kBytes:
      return use.length;
    case PrefixOrder::kHits:
      return use.num_hits;
    case PrefixOrder::kAge:
      return ~use.last_used_s;
  }
  return 0;
}

void CountPages(const KvCache& cache, NodeId node, PrefixInfo* info) {
  const PrefixTree& tree = cache.tree();
  const PagePool& pool = cache.pool();
  const KvShape& shape = cache.shape();
  const auto add = [&](PageClass c, uint32_t num_pages) {
    info->num_pages += num_pages;
    info->bytes += num_pages * pool.stride(c);
  };
  for (uint32_t i = 0; i <= tree.marked_pages() && !tree.is_root(node); ++i) {
    for (PageClass c = 0; c < pool.num_classes(); ++c)
      if (tree.has_page(node, c)) add(c, 1);
    node = tree.parent(node);
  }
  if (tree.is_root(node)) return;
  // Above, those of full groups, each in one form.
  const uint32_t num_nodes = tree.nodes()[node].depth + 1;
  for (uint32_t g = 0; g < shape.num_groups(); ++g) {
    const KvGroupShape& group = shape.groups[g];
    if (group.window > 0) continue;
    const uint32_t num_open =
        group.has_sealed() ? std::min(num_nodes, group.sink_pages) : num_nodes;
    add(OpenClass(g), num_open);
    if (group.has_sealed()) add(SealedClass(g), num_nodes - num_open);
  }
}

uint32_t NumHolders(const KvCache& cache, NodeId node) {
  uint32_t most = cache.tree().num_locks(node);
  for (PageClass c = 0; c < cache.pool().num_classes(); ++c)
    if (cache.tree().has_page(node, c))
      most = std::max(most, cache.pool().num_uses(c, cache.tree().page(node, c)));
  return most;
}

bool IsOf(const KvCache& cache, NodeId node, const std::optional<std::string>& tenant) {
  return !tenant.has_value() || cache.tenant_name(cache.tree().TenantOf(node)) == *tenant;
}

}  // namespace

PrefixInfo DescribePrefix(const KvCache& cache, NodeId node) {
  const PrefixTree& tree = cache.tree();
  const PrefixUse& use = tree.uses()[node];
  PrefixInfo info;
  info.id = use.key;
  info.tenant = cache.tenant_name(tree.TenantOf(node));
  info.length = tree.LengthOf(node);
  info.num_hits = use.num_hits;
  info.last_used_s = use.last_used_s;
  info.num_holders = NumHolders(cache, node);
  CountPages(cache, node, &info);
  if (const PrefixPins::Pin* pin = cache.pins().Find(node)) {
    info.is_pinned = pin->is_pinned;
    info.retained_until_s = pin->until_s;
    info.label = pin->label;
  }
  return info;
}

PrefixListing ListPrefixes(const KvCache& cache, const PrefixQuery& query) {
  PrefixListing listing;
  const std::span<const PrefixUse> uses = cache.tree().uses();
  std::optional<TenantId> tenant;
  if (query.tenant.has_value()) {
    tenant = cache.FindTenant(*query.tenant);
    if (!tenant.has_value()) return listing;
  }
  // The best so far, as a heap with the worst of them on top.
  using Ranked = std::pair<uint32_t, NodeId>;  // ~rank, node: the smaller, the earlier
  std::vector<Ranked> best;
  const uint32_t limit = std::min(query.limit, kMostListed);
  best.reserve(limit);
  for (NodeId node = 0; node < uses.size(); ++node) {
    const PrefixUse& use = uses[node];
    if (use.length == 0 || (tenant.has_value() && cache.tree().TenantOf(node) != *tenant)) continue;
    ++listing.num_prefixes;
    const Ranked ranked{~RankOf(use, query.order), node};
    if (best.size() == limit) {
      if (best.empty() || best.front() < ranked) continue;
      std::ranges::pop_heap(best);
      best.pop_back();
    }
    best.push_back(ranked);
    std::ranges::push_heap(best);
  }
  std::ranges::sort_heap(best);
  for (const auto& [rank, node] : best) listing.prefixes.push_back(DescribePrefix(cache, node));
  if (query.order == PrefixOrder::kBytes)
    std::ranges::stable_sort(listing.prefixes, std::greater<>(), &PrefixInfo::bytes);
  return listing;
}

NodeId FindPrefixNode(const KvCache& cache, PrefixId id, const std::optional<std::string>& tenant) {
  const std::span<const PrefixUse> uses = cache.tree().uses();
  for (NodeId node = 0; node < uses.size(); ++node)
    if (uses[node].key == id && id != 0 && !cache.tree().is_root(node) &&
        !cache.tree().is_dropped(node) && IsOf(cache, node, tenant))
      return node;
  return kNoNode;
}

}  // namespace quire
