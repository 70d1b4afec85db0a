// CacheReport: where the bytes of the KV budget are: for /metrics, /quire/v1/cache and the banner.
//
// All bytes but the committed ones are counted as the budget counts them: a page costs its size
// rounded up to 4 KiB (PageStride). Of each layer group and of each tenant, every page with a hold
// is in one of three states:
//   held    a sequence uses it
//   cached  nobody does; eviction may take it
//   pinned  nobody does; a pin forbids eviction
// so that  held + cached + pinned + free = budget,  to the byte. Free bytes belong to no group: any
// page can be made of them.
//
// A tenant's bytes are those of all pages taken by its sequences, also private ones, and of what
// they left in the tree; a page that several of them use counts once. Tenants share no page, so the
// tenants' bytes sum to the groups'. Retained bytes are those of a tenant's pages with a pin, held
// ones included: what its retained budget limits (PinOptions::most_bytes).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cache/evict_reason.h"
#include "cache/page_pool.h"
#include "cache/page_residency.h"

namespace quire {

struct GroupReport {
  uint32_t window = 0;           // 0: full
  size_t open_page_bytes = 0;    // what a page costs
  size_t sealed_page_bytes = 0;  // 0: no sealed form
  PageStates pages, bytes;       // of both forms
  uint64_t free_pages = 0;       // that the free bytes are enough for, in the form of old pages,
                                 // if no other group takes them
  uint64_t evicted_pages[kNumEvictReasons] = {};  // since the start, [EvictReason]
};

struct TenantReport {
  std::string tenant;
  PageStates bytes;
  uint64_t retained_bytes = 0;
};

struct CacheReport {
  size_t budget_bytes = 0, free_bytes = 0;
  PageStates pages, bytes;  // of all groups
  // What the system has given, in whole extents: behind pages with a hold, and the rest.
  size_t committed_page_bytes = 0, committed_slack_bytes = 0;
  std::vector<GroupReport> groups;    // [layer group]
  std::vector<TenantReport> tenants;  // that have or had something, in order of appearance
  uint32_t num_namespaces = 0, num_pins = 0;
  uint64_t num_nodes = 0;  // pages of tokens that the tree knows
  ResidencyTimes residency;
};

class KvCache;

// Cost: O(groups + tenants).
CacheReport MakeCacheReport(const KvCache& cache);

}  // namespace quire
