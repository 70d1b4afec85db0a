// KvReport: every number about KV memory that the server tells: the banner, /metrics and
// /quire/v1/cache all come from it, so they agree to the byte.
//
// A page counts with its stride, its bytes rounded up to 4 KiB, in one of four states:
//   held    used by a running sequence (pinned or not)
//   cached  in the prefix tree, without a use or a pin: it may be evicted
//   pinned  in the prefix tree, without a use, with a pin
//   free    the rest of the budget; it belongs to no layer group
// held + cached + pinned + free = budget, at any moment.
//
// Threading: plain values; the functions that read them run on the engine's thread (Engine::Ask).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cache/cache_report.h"
#include "engine/engine.h"

namespace quire {

struct KvAmount {
  uint64_t bytes = 0, pages = 0;
};

struct KvGroupReport {
  std::string name;           // "full", "window(1024)"
  uint32_t window = 0;        // 0: all keys
  uint64_t page_bytes = 0;    // stride of an open page
  uint64_t sealed_bytes = 0;  // stride of a sealed page; 0: no such form
  KvAmount held = {}, cached = {}, pinned = {};
  uint64_t free_pages = 0;                        // that the free bytes hold, if all are of it
  uint64_t evicted_pages[kNumEvictReasons] = {};  // since the start, [EvictReason]
};

// Of the pages that a tenant's sequences took, and of what they left; tenants share none.
struct KvTenantReport {
  std::string name;
  uint64_t held_bytes = 0, cached_bytes = 0, pinned_bytes = 0;
  uint64_t retained_bytes = 0;  // with a pin, held ones too
  uint64_t sum() const { return held_bytes + cached_bytes + pinned_bytes; }
};

// What does not change while the server runs.
struct KvPlan {
  std::string codec = {};
  uint32_t page_size = 0;    // tokens
  uint32_t context_len = 0;  // most tokens of a request
  uint32_t longest_len = 0;  // the same, as far as the budget holds it
  uint64_t budget_bytes = 0;
  uint64_t num_tokens = 0;  // of requests of context_len tokens that fill the budget
  uint64_t num_pages = 0;   // num_tokens / page_size: pages of the first group
  double concurrency = 0;   // such requests: num_tokens / context_len
  bool keeps_prefixes = true;
};

struct KvReport {
  KvPlan plan;
  uint64_t held_bytes = 0, cached_bytes = 0, pinned_bytes = 0, free_bytes = 0;
  uint64_t committed_bytes = 0, slack_bytes = 0;  // whole extents; the part behind no page
  uint64_t used_slots = 0, held_slots = 0;        // of running sequences, in the full group
  uint64_t num_failures = 0;                      // PagePool::num_failures
  std::vector<KvGroupReport> groups;
  std::vector<KvTenantReport> tenants;
};

KvPlan ReadKvPlan(const Engine& engine, const KvShape& shape);
// All of one moment.
KvReport ReadKvReport(const Engine& engine, StepLoop& loop, const EngineStats& stats);

// The body of GET /quire/v1/cache; with a tenant only what is its own.
std::string KvReportJson(const KvReport& report, const std::optional<std::string>& tenant = {});

}  // namespace quire
