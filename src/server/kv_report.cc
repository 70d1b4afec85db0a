#include "server/kv_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/message_text.h"
#include "cache/kv_need.h"

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

KvGroupReport ReadGroup(const KvCache& cache, uint32_t group) {
  const PagePool& pool = cache.pool();
  KvGroupReport report{.name = GroupName(cache.shape().groups[group].window),
                       .window = cache.shape().groups[group].window,
                       .page_bytes = pool.stride(OpenClass(group)),
                       .sealed_bytes = pool.stride(SealedClass(group))};
  for (const PageClass c : {OpenClass(group), SealedClass(group)}) {
    if (!pool.has_class(c)) continue;
    uint64_t num_pinned = 0;
    for (PageId id = 0; pool.pinned_bytes() > 0 && id < pool.num_pages(c); ++id)
      num_pinned += pool.is_pinned(c, id) && pool.num_uses(c, id) == 0 ? 1 : 0;
    const auto add = [&](KvAmount& amount, uint64_t pages) {
      amount.pages += pages;
      amount.bytes += pages * pool.stride(c);
    };
    add(report.held, pool.num_held(c));
    add(report.cached, pool.num_cached(c) - num_pinned);
    add(report.pinned, num_pinned);
  }
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
  const KvCache& cache = loop.cache();
  KvReport report{.plan = ReadKvPlan(engine, cache.shape()),
                  .held_bytes = stats.kv_held_bytes,
                  .cached_bytes = stats.kv_cached_bytes - stats.kv_pinned_bytes,
                  .pinned_bytes = stats.kv_pinned_bytes,
                  .free_bytes = stats.kv_free_bytes,
                  .committed_bytes = stats.kv_committed_bytes,
                  .slack_bytes = stats.kv_slack_bytes,
                  .used_slots = stats.used_slots,
                  .held_slots = stats.held_slots,
                  .groups = {},
                  .tenants = {}};
  for (uint32_t group = 0; group < cache.shape().num_groups(); ++group)
    report.groups.push_back(ReadGroup(cache, group));
  return report;
}

std::string KvReportJson(const KvReport& report) {
  const KvPlan& plan = report.plan;
  Json json = {{"schema", 1},
               {"codec", plan.codec},
               {"page_size", plan.page_size},
               {"context_len", plan.context_len},
               {"longest_request_tokens", plan.longest_len},
               {"pool_pages", plan.num_pages},
               {"pool_tokens", plan.num_tokens},
               {"concurrency_at_full_context", plan.concurrency},
               {"prefix_cache", plan.keeps_prefixes},
               {"budget_bytes", plan.budget_bytes},
               {"held_bytes", report.held_bytes},
               {"cached_bytes", report.cached_bytes},
               {"pinned_bytes", report.pinned_bytes},
               {"free_bytes", report.free_bytes},
               {"committed_bytes", report.committed_bytes},
               {"slack_bytes", report.slack_bytes},
               {"used_slots", report.used_slots},
               {"held_slots", report.held_slots}};
  json["groups"] = Json::array();
  for (const KvGroupReport& group : report.groups)
    json["groups"].push_back({{"name", group.name},
                              {"window", group.window},
                              {"page_bytes", group.page_bytes},
                              {"sealed_page_bytes", group.sealed_bytes},
                              {"held", AmountJson(group.held)},
                              {"cached", AmountJson(group.cached)},
                              {"pinned", AmountJson(group.pinned)}});
  json["tiers"] = Json::array();
  json["tiers"].push_back({{"name", "device"},
                           {"state", "up"},
                           {"capacity_bytes", plan.budget_bytes},
                           {"bytes", plan.budget_bytes - report.free_bytes}});
  json["tenants"] = Json::array();
  for (const KvTenantReport& tenant : report.tenants)
    json["tenants"].push_back({{"name", tenant.name}, {"bytes", tenant.bytes}});
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

}  // namespace quire
