// What a cache of some pages would have hit on a trace of requests, by eviction policy.
//
// A request is a list of page ids, each of which names a page and all before it (so the ids of a
// trace form a tree). Requests run one after another: count the leading ids that are present (the
// hits), then insert the rest; no outputs, nothing runs at once. Pages have one size, and full ones
// only. Where no page can go (all are of the request itself), the rest stays out.
//
// This is the policy's view of the prefix tree (cache/prefix_tree.h) without tokens and memory: the
// same calls in the same order. For measurements and tests.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "cache/eviction_policy.h"

namespace quire {

struct TraceRequest {
  TenantId tenant = 0;
  std::vector<uint64_t> ids;
};

struct HitCount {
  uint64_t hits = 0, pages = 0;
  double rate() const { return pages == 0 ? 0 : static_cast<double>(hits) / pages; }
};

// Evicts leaves only, by a policy and cache/tenant_shares.h with equal shares. One count for each
// tenant. kInvalidArgument if an id comes after two different ids, or twice in a request.
StatusOr<std::vector<HitCount>> ReplayPolicy(std::span<const TraceRequest> requests,
                                             uint32_t num_pages, uint32_t page_size,
                                             EvictionPolicyKind policy);

// The requests of tenant 0, and after each of them requests of tenant 1 with `rate` times as many
// pages, 24 at most in a request, that nobody asks for again. Requires: no ids from 2^63 on.
std::vector<TraceRequest> WithFlood(std::span<const TraceRequest> requests, uint32_t rate);

// Two bounds to compare with, for all tenants together; both may evict any page, not only leaves.
// Plain LRU: the page touched longest ago, a request's first page first.
HitCount ReplayPlainLru(std::span<const TraceRequest> requests, uint32_t num_pages);
// Belady's: the page that is needed again last; of a request's pages the last first.
HitCount ReplayBestPossible(std::span<const TraceRequest> requests, uint32_t num_pages);

}  // namespace quire
