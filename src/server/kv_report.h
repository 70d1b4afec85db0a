// KvReport: every number about KV memory that the server tells: the banner, /metrics and
// /quire/v1/cache all come from it, so they agree to the byte.
//
// The states of pages, and that they sum to the budget: cache/cache_report.h.
//
// Threading: plain values; the functions that read them run on the engine's thread (Engine::Ask).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cache/cache_report.h"
#include "engine/engine.h"

namespace quire {

// What does not change while the server runs.
struct KvPlan {
  std::string codec = {};
  uint32_t page_size = 0;    // tokens
  uint32_t context_len = 0;  // most tokens of a request
  uint32_t longest_len = 0;  // the same, as far as the budget holds it
  uint64_t budget_bytes = 0;
  std::string budget_source = {};  // "as given", or what the default was made from
  uint64_t num_tokens = 0;         // of requests of context_len tokens that fill the budget
  uint64_t num_pages = 0;          // num_tokens / page_size: pages of the first group
  double concurrency = 0;          // such requests: num_tokens / context_len
  bool keeps_prefixes = true;
};

struct KvReport {
  KvPlan plan;
  // The cache's own; without the tenant "" (sequences that share with nobody) if that has nothing.
  CacheReport cache;
  uint64_t used_slots = 0, held_slots = 0;  // of running sequences, in the full group
  uint64_t num_failures = 0;                // PagePool::num_failures

  uint64_t committed_bytes() const {
    return cache.committed_page_bytes + cache.committed_slack_bytes;
  }
  uint64_t taken_bytes() const { return plan.budget_bytes - cache.free_bytes; }
};

// "full", "window(1024)".
std::string GroupName(const GroupReport& group);

KvPlan ReadKvPlan(const Engine& engine, const KvShape& shape);
// All of one moment.
KvReport ReadKvReport(const Engine& engine, StepLoop& loop, const EngineStats& stats);

// The body of GET /quire/v1/cache; with a tenant only what is its own.
std::string KvReportJson(const KvReport& report, const std::optional<std::string>& tenant = {});

}  // namespace quire
