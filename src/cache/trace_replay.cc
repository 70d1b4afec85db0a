#include "cache/trace_replay.h"

#include <algorithm>
#include <list>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/errors.h"
#include "cache/free_ids.h"
#include "cache/tenant_shares.h"

namespace quire {
namespace {

// The pages that are present, as a tree of nodes.
class TraceCache {
 public:
  TraceCache(uint32_t num_pages, uint32_t page_size, EvictionPolicyKind policy)
      : policy_(MakeEvictionPolicy(policy, num_pages, page_size)),
        free_(num_pages),
        nodes_(num_pages) {}

  // The number of hits.
  StatusOr<uint64_t> Run(const TraceRequest& request) {
    NodeId parent = kNoNode;
    size_t matched = 0;
    for (; matched < request.ids.size(); ++matched) {
      const auto found = present_.find(request.ids[matched]);
      if (found == present_.end()) break;
      if (nodes_[found->second].parent != parent) return NotATree(request.ids[matched]);
      parent = found->second;
      policy_->Hit(parent);
      shares_.Changed(nodes_[parent].tenant);
    }
    shares_.Touch(request.tenant, request.ids.size());
    Lock(parent, true);
    for (size_t i = matched; i < request.ids.size(); ++i) {
      const NodeId node = TakeNode();
      if (node == kNoNode) break;
      if (!present_.emplace(request.ids[i], node).second) return NotATree(request.ids[i]);
      nodes_[node] = {.id = request.ids[i], .parent = parent, .tenant = request.tenant};
      policy_->Insert(node, {.key = request.ids[i], .tenant = request.tenant});
      shares_.Add(request.tenant, 1);
      Lock(node, true);
      if (parent != kNoNode) ++nodes_[parent].num_children;
      Lock(parent, false);
      parent = node;
    }
    Lock(parent, false);
    return matched;
  }

 private:
  struct Node {
    uint64_t id = 0;
    NodeId parent = kNoNode;
    TenantId tenant = 0;
    uint32_t num_children = 0;
    bool is_locked = false;
  };

  static Status NotATree(uint64_t id) {
    return InvalidArgument("page id {} comes after two different ids: not a prefix trace", id);
  }

  // The request's last page so far is locked; those before it are no leaves.
  void Lock(NodeId node, bool is_locked) {
    if (node == kNoNode) return;
    nodes_[node].is_locked = is_locked;
    policy_->SetEvictable(node, !is_locked && nodes_[node].num_children == 0);
    shares_.Changed(nodes_[node].tenant);
  }

  // A node to use, after evicting one if none is free; kNoNode if none can go.
  NodeId TakeNode() {
    if (free_.num_free() == 0) {
      const NodeId victim = shares_.Choose(*policy_).node;
      if (victim == kNoNode) return kNoNode;
      policy_->Remove(victim);
      const Node& node = nodes_[victim];
      shares_.Subtract(node.tenant, 1);
      present_.erase(node.id);
      if (node.parent != kNoNode && --nodes_[node.parent].num_children == 0) {
        policy_->SetEvictable(node.parent, !nodes_[node.parent].is_locked);
        shares_.Changed(nodes_[node.parent].tenant);
      }
      free_.GiveBack(victim);
    }
    return free_.TakeLowest();
  }

  std::unique_ptr<EvictionPolicy> policy_;
  TenantShares shares_;
  FreeIds free_;
  std::vector<Node> nodes_;
  std::unordered_map<uint64_t, NodeId> present_;
};

// Present ids and those that leave first, for policies that may evict any page.
template <class Order>
HitCount ReplayAnyPage(std::span<const TraceRequest> requests, uint32_t num_pages, Order order_of) {
  using Key = decltype(order_of(0, 0));
  std::unordered_map<uint64_t, Key> present;
  std::set<std::pair<Key, uint64_t>> queue;  // the first goes next
  HitCount count;
  for (size_t r = 0; r < requests.size(); ++r) {
    const std::vector<uint64_t>& ids = requests[r].ids;
    count.pages += ids.size();
    for (size_t i = 0; i < ids.size() && present.contains(ids[i]); ++i) ++count.hits;
    for (size_t i = 0; i < ids.size(); ++i) {
      const Key key = order_of(r, i);
      const auto [found, is_new] = present.emplace(ids[i], key);
      if (!is_new) queue.erase({found->second, ids[i]});
      found->second = key;
      queue.insert({key, ids[i]});
      if (present.size() <= num_pages) continue;
      present.erase(queue.begin()->second);
      queue.erase(queue.begin());
    }
  }
  return count;
}

}  // namespace

StatusOr<std::vector<HitCount>> ReplayPolicy(std::span<const TraceRequest> requests,
                                             uint32_t num_pages, uint32_t page_size,
                                             EvictionPolicyKind policy) {
  uint64_t most = 0;  // a larger cache is no different and only takes memory
  for (const TraceRequest& request : requests) most += request.ids.size();
  TraceCache cache(static_cast<uint32_t>(std::min<uint64_t>(num_pages, most)), page_size, policy);
  std::vector<HitCount> counts;
  for (const TraceRequest& request : requests) {
    if (request.tenant >= counts.size()) counts.resize(request.tenant + 1);
    QUIRE_ASSIGN_OR_RETURN(const uint64_t hits, cache.Run(request));
    counts[request.tenant].hits += hits;
    counts[request.tenant].pages += request.ids.size();
  }
  return counts;
}

std::vector<TraceRequest> WithFlood(std::span<const TraceRequest> requests, uint32_t rate) {
  constexpr uint64_t kMostPages = 24;  // the mean of the Mooncake conversations
  std::vector<TraceRequest> both;
  uint64_t id = uint64_t{1} << 63;
  for (const TraceRequest& request : requests) {
    both.push_back(request);
    for (uint64_t left = rate * request.ids.size(); left > 0;) {
      TraceRequest& flood = both.emplace_back(TraceRequest{.tenant = 1, .ids = {}});
      flood.ids.resize(std::min(left, kMostPages));
      for (uint64_t& page : flood.ids) page = id++;
      left -= flood.ids.size();
    }
  }
  return both;
}

HitCount ReplayPlainLru(std::span<const TraceRequest> requests, uint32_t num_pages) {
  uint64_t clock = 0;
  return ReplayAnyPage(requests, num_pages, [&](size_t, size_t) { return ++clock; });
}

HitCount ReplayBestPossible(std::span<const TraceRequest> requests, uint32_t num_pages) {
  // By request and page: minus the request that needs the page next.
  constexpr int64_t kNever = INT64_MIN;
  std::vector<std::vector<int64_t>> needed(requests.size());
  std::unordered_map<uint64_t, int64_t> next;
  for (size_t r = requests.size(); r-- > 0;) {
    const std::vector<uint64_t>& ids = requests[r].ids;
    needed[r].resize(ids.size(), kNever);
    for (size_t i = 0; i < ids.size(); ++i)
      if (const auto found = next.find(ids[i]); found != next.end()) needed[r][i] = found->second;
    for (const uint64_t id : ids) next[id] = -static_cast<int64_t>(r);
  }
  return ReplayAnyPage(requests, num_pages, [&](size_t r, size_t i) {
    return std::pair(needed[r][i], -static_cast<int64_t>(i));
  });
}

}  // namespace quire
