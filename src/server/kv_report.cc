#include "server/kv_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cache/kv_need.h"
#include "server/admin_fields.h"
#include "server/api/json_text.h"

namespace quire {
namespace {

using Json = nlohmann::ordered_json;

std::string GroupName(uint32_t window) {
  return window == 0 ? "full" : fmt::format("window({})", window);
}

// Tokens of so many equal requests, as long as the context, as fill the budget.
uint64_t TokensOfBudget(const KvShape& shape, uint32_t context_len, uint64_t budget_bytes) {
  const uint64_t num_pages = shape.NumPages(context_len);
  const size_t request_bytes = HeldBytes(shape, static_cast<uint32_t>(num_pages * shape.page_size));
  return budget_bytes * num_pages / request_bytes * shape.page_size;
}

KvGroupReport ReadGroup(const GroupReport& from) {
  KvGroupReport report{.name = GroupName(from.window),
                       .window = from.window,
                       .page_bytes = from.open_page_bytes,
                       .sealed_bytes = from.sealed_page_bytes,
                       .held = {from.bytes.held, from.pages.held},
                       .cached = {from.bytes.cached, from.pages.cached},
                       .pinned = {from.bytes.pinned, from.pages.pinned},
                       .free_pages = from.free_pages};
  std::ranges::copy(from.evicted_pages, report.evicted_pages);
  return report;
}

Json AmountJson(const KvAmount& amount) {
  return {{"bytes", amount.bytes}, {"pages", amount.pages}};
}

}  // namespace

KvPlan ReadKvPlan(const Engine& engine, const KvShape& shape) {
  const EngineOptions& options = engine.options();
  KvPlan plan{.codec = std::string(KvCodecName(options.kv_codec)),
              .page_size = shape.page_size,
              .context_len = options.context_len,
              .longest_len = engine.longest_sequence(),
              .budget_bytes = engine.kv_budget_bytes(),
              .keeps_prefixes = options.keeps_prefixes};
  plan.num_tokens = TokensOfBudget(shape, plan.context_len, plan.budget_bytes);
  plan.num_pages = plan.num_tokens / plan.page_size;
  plan.concurrency = static_cast<double>(plan.num_tokens) / plan.context_len;
  return plan;
}

KvReport ReadKvReport(const Engine& engine, StepLoop& loop, const EngineStats& stats) {
  const CacheReport cache = MakeCacheReport(loop.cache());
  KvReport report{.plan = ReadKvPlan(engine, loop.cache().shape()),
                  .held_bytes = cache.bytes.held,
                  .cached_bytes = cache.bytes.cached,
                  .pinned_bytes = cache.bytes.pinned,
                  .free_bytes = cache.free_bytes,
                  .committed_bytes = cache.committed_page_bytes + cache.committed_slack_bytes,
                  .slack_bytes = cache.committed_slack_bytes,
                  .used_slots = stats.used_slots,
                  .held_slots = stats.held_slots,
                  .num_failures = loop.cache().pool().num_failures(),
                  .groups = {},
                  .tenants = {}};
  for (const GroupReport& group : cache.groups) report.groups.push_back(ReadGroup(group));
  for (const TenantReport& tenant : cache.tenants) {
    // The cache's own, of sequences that share with nobody; it is told when it has something.
    if (tenant.tenant.empty() && tenant.bytes.sum() == 0) continue;
    report.tenants.push_back({.name = tenant.tenant,
                              .held_bytes = tenant.bytes.held,
                              .cached_bytes = tenant.bytes.cached,
                              .pinned_bytes = tenant.bytes.pinned,
                              .retained_bytes = tenant.retained_bytes});
  }
  return report;
}

namespace {

Json PlanJson(const KvPlan& plan) {
  return {{"schema", 1},
          {"codec", plan.codec},
          {"page_size", plan.page_size},
          {"context_len", plan.context_len},
          {"longest_request_tokens", plan.longest_len},
          {"pool_pages", plan.num_pages},
          {"pool_tokens", plan.num_tokens},
          {"concurrency_at_full_context", plan.concurrency},
          {"prefix_cache", plan.keeps_prefixes},
          {"budget_bytes", plan.budget_bytes}};
}

Json GroupJson(const KvGroupReport& group) {
  Json json = {{"name", group.name},
               {"window", group.window},
               {"page_bytes", group.page_bytes},
               {"sealed_page_bytes", group.sealed_bytes},
               {"held", AmountJson(group.held)},
               {"cached", AmountJson(group.cached)},
               {"pinned", AmountJson(group.pinned)},
               {"free_pages", group.free_pages}};
  for (uint32_t reason = 0; reason < kNumEvictReasons; ++reason)
    json["evicted_pages"][std::string(EvictReasonName(static_cast<EvictReason>(reason)))] =
        group.evicted_pages[reason];
  return json;
}

}  // namespace

std::string KvReportJson(const KvReport& report, const std::optional<std::string>& tenant) {
  Json json = PlanJson(report.plan);
  if (!tenant.has_value()) {
    json["held_bytes"] = report.held_bytes;
    json["cached_bytes"] = report.cached_bytes;
    json["pinned_bytes"] = report.pinned_bytes;
    json["free_bytes"] = report.free_bytes;
    json["committed_bytes"] = report.committed_bytes;
    json["slack_bytes"] = report.slack_bytes;
    json["used_slots"] = report.used_slots;
    json["held_slots"] = report.held_slots;
    json["groups"] = Json::array();
    for (const KvGroupReport& group : report.groups) json["groups"].push_back(GroupJson(group));
    json["tiers"] = Json::array();
    json["tiers"].push_back({{"name", "device"},
                             {"state", "up"},
                             {"capacity_bytes", report.plan.budget_bytes},
                             {"bytes", report.plan.budget_bytes - report.free_bytes}});
  }
  json["tenants"] = Json::array();
  for (const KvTenantReport& one : report.tenants)
    if (!tenant.has_value() || *tenant == one.name)
      json["tenants"].push_back({{"name", one.name},
                                 {"bytes", one.sum()},
                                 {"held_bytes", one.held_bytes},
                                 {"cached_bytes", one.cached_bytes},
                                 {"pinned_bytes", one.pinned_bytes},
                                 {"retained_bytes", one.retained_bytes}});
  return ToText(json);
}

}  // namespace quire
