#include "server/kv_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "cache/kv_need.h"
#include "server/admin_fields.h"
#include "server/api/json_text.h"

namespace quire {
namespace {

using Json = nlohmann::ordered_json;

// Tokens of so many equal requests, as long as the context, as fill the budget.
uint64_t TokensOfBudget(const KvShape& shape, uint32_t context_len, uint64_t budget_bytes) {
  const uint64_t num_pages = shape.NumPages(context_len);
  const size_t request_bytes = HeldBytes(shape, static_cast<uint32_t>(num_pages * shape.page_size));
  return budget_bytes * num_pages / request_bytes * shape.page_size;
}

Json AmountJson(uint64_t bytes, uint64_t pages) { return {{"bytes", bytes}, {"pages", pages}}; }

}  // namespace

std::string GroupName(const GroupReport& group) {
  return group.window == 0 ? "full" : fmt::format("window({})", group.window);
}

KvPlan ReadKvPlan(const Engine& engine, const KvShape& shape) {
  const EngineOptions& options = engine.options();
  KvPlan plan{.codec = std::string(KvCodecName(options.kv_codec)),
              .page_size = shape.page_size,
              .context_len = options.context_len,
              .longest_len = engine.longest_sequence(),
              .budget_bytes = engine.kv_budget_bytes(),
              .budget_source = engine.kv_budget_source(),
              .keeps_prefixes = options.keeps_prefixes};
  plan.num_tokens = TokensOfBudget(shape, plan.context_len, plan.budget_bytes);
  plan.num_pages = plan.num_tokens / plan.page_size;
  plan.concurrency = static_cast<double>(plan.num_tokens) / plan.context_len;
  return plan;
}

KvReport ReadKvReport(const Engine& engine, StepLoop& loop, const EngineStats& stats) {
  KvReport report{.plan = ReadKvPlan(engine, loop.cache().shape()),
                  .cache = MakeCacheReport(loop.cache()),
                  .used_slots = stats.used_slots,
                  .held_slots = stats.held_slots,
                  .num_failures = loop.cache().pool().num_failures()};
  std::erase_if(report.cache.tenants, [](const TenantReport& tenant) {
    return tenant.tenant.empty() && tenant.bytes.sum() == 0;
  });
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
          {"budget_bytes", plan.budget_bytes},
          {"budget_source", plan.budget_source}};
}

Json GroupJson(const GroupReport& group) {
  Json json = {{"name", GroupName(group)},
               {"window", group.window},
               {"page_bytes", group.open_page_bytes},
               {"sealed_page_bytes", group.sealed_page_bytes},
               {"held", AmountJson(group.bytes.held, group.pages.held)},
               {"cached", AmountJson(group.bytes.cached, group.pages.cached)},
               {"pinned", AmountJson(group.bytes.pinned, group.pages.pinned)},
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
    json["held_bytes"] = report.cache.bytes.held;
    json["cached_bytes"] = report.cache.bytes.cached;
    json["pinned_bytes"] = report.cache.bytes.pinned;
    json["free_bytes"] = report.cache.free_bytes;
    json["committed_bytes"] = report.committed_bytes();
    json["slack_bytes"] = report.cache.committed_slack_bytes;
    json["used_slots"] = report.used_slots;
    json["held_slots"] = report.held_slots;
    json["groups"] = Json::array();
    for (const GroupReport& group : report.cache.groups) json["groups"].push_back(GroupJson(group));
    json["tiers"] = Json::array();
    json["tiers"].push_back({{"name", "device"},
                             {"state", "up"},
                             {"capacity_bytes", report.plan.budget_bytes},
                             {"bytes", report.taken_bytes()}});
  }
  json["tenants"] = Json::array();
  for (const TenantReport& one : report.cache.tenants)
    if (!tenant.has_value() || *tenant == one.tenant)
      json["tenants"].push_back({{"name", one.tenant},
                                 {"bytes", one.bytes.sum()},
                                 {"held_bytes", one.bytes.held},
                                 {"cached_bytes", one.bytes.cached},
                                 {"pinned_bytes", one.bytes.pinned},
                                 {"retained_bytes", one.retained_bytes}});
  return ToText(json);
}

}  // namespace quire
