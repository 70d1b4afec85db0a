#include "server/engine_metrics.h"

#include <string>
#include <string_view>
#include <utility>

namespace quire {
namespace {

struct Writer {
  const MetricsOptions& options;
  MetricFamilies& to;

  MetricLabels Vllm(MetricLabels more = {}) const {
    MetricLabels labels = {{"model_name", options.model_name}, {"engine", "0"}};
    for (auto& label : more) labels.push_back(std::move(label));
    return labels;
  }
  void Gauge(std::string_view name, std::string_view help, double value) {
    to.AddGauge(name, help, Vllm(), value);
  }
  void Counter(std::string_view name, std::string_view help, uint64_t value) {
    to.AddCounter(name, help, Vllm(), static_cast<double>(value));
  }
  void Counter(std::string_view name, std::string_view help, std::string label, std::string of,
               uint64_t value) {
    to.AddCounter(name, help, Vllm({{std::move(label), std::move(of)}}),
                  static_cast<double>(value));
  }
};

void AddQueue(Writer& w, const EngineStats& stats) {
  w.Gauge("vllm:num_requests_running", "Sequences that have pages.", stats.num_running);
  w.Gauge("vllm:num_requests_waiting", "Sequences that wait for pages.", stats.num_waiting);
  constexpr char kByReason[] = "vllm:num_requests_waiting_by_reason";
  constexpr char kByReasonHelp[] =
      "Those that wait: for pages or a place (capacity), or for one that computes the same prefix "
      "(deferred).";
  w.to.AddGauge(kByReason, kByReasonHelp, w.Vllm({{"reason", "capacity"}}),
                stats.num_waiting - stats.num_deferred);
  w.to.AddGauge(kByReason, kByReasonHelp, w.Vllm({{"reason", "deferred"}}), stats.num_deferred);
  constexpr char kRefused[] = "vllm:admission_rejections_total";
  const auto refused = [&](const char* reason, uint64_t count) {
    w.to.AddCounter(kRefused, "Requests refused because the queue was full.",
                    {{"model_name", w.options.model_name}, {"reason", reason}},
                    static_cast<double>(count));
  };
  refused("max_num_queued_reqs", stats.num_refused_for_requests);
  refused("max_num_queued_tokens", stats.num_refused_for_tokens);
}

void AddKvUse(Writer& w, const KvReport& report) {
  const double use = report.plan.budget_bytes == 0
                         ? 0
                         : static_cast<double>(report.cache.bytes.held) /
                               static_cast<double>(report.plan.budget_bytes);
  constexpr char kHelp[] = "Held bytes of the KV budget, 0 to 1; cached pages count as free.";
  w.Gauge("vllm:kv_cache_usage_perc", kHelp, use);
  w.Gauge("vllm:gpu_cache_usage_perc", "Old name of vllm:kv_cache_usage_perc.", use);
  const KvPlan& plan = report.plan;
  w.to.AddGauge("vllm:cache_config_info", "The KV cache; the value is always 1.",
                {{"engine", "0"},
                 {"block_size", std::to_string(plan.page_size)},
                 {"num_gpu_blocks", std::to_string(plan.num_pages)},
                 {"num_cpu_blocks", "0"},
                 {"cache_dtype", plan.codec},
                 {"kv_cache_size_tokens", std::to_string(plan.num_tokens)},
                 {"enable_prefix_caching", plan.keeps_prefixes ? "True" : "False"}},
                1);
}

void AddResidency(Writer& w, const ResidencyTimes& times) {
  const auto add = [&](const char* name, const char* help,
                       const Histogram<kResidencyBounds>& seconds) {
    w.to.AddHistogram(name, help, w.Vllm(), seconds.bounds(), seconds.counts, seconds.sum);
  };
  add("vllm:kv_block_lifetime_seconds", "From a cached page's making to its eviction.",
      times.lifetimes);
  add("vllm:kv_block_idle_before_evict_seconds", "From a cached page's last use to its eviction.",
      times.idle_times);
  add("vllm:kv_block_reuse_gap_seconds", "Between two uses of a cached page.", times.reuse_gaps);
}

void AddPrefixCache(Writer& w, const EngineStats& stats) {
  const MatchCounts& matches = stats.matches;
  constexpr char kQueried[] = "Prompt tokens that were looked up in the prefix cache.";
  constexpr char kHit[] = "Those of them that it had.";
  w.Counter("vllm:prefix_cache_queries_total", kQueried, matches.queried_tokens);
  w.Counter("vllm:prefix_cache_hits_total", kHit, matches.matched_tokens);
  w.Counter("vllm:gpu_prefix_cache_queries_total", "Old name of vllm:prefix_cache_queries_total.",
            matches.queried_tokens);
  w.Counter("vllm:gpu_prefix_cache_hits_total", "Old name of vllm:prefix_cache_hits_total.",
            matches.matched_tokens);
  w.Gauge("vllm:gpu_prefix_cache_hit_rate", "Hits by queries since the start, 0 to 1.",
          matches.queried_tokens == 0 ? 0
                                      : static_cast<double>(matches.matched_tokens) /
                                            static_cast<double>(matches.queried_tokens));
  w.Counter("vllm:external_prefix_cache_queries_total", "Tokens looked up in lower tiers.", 0);
  w.Counter("vllm:external_prefix_cache_hits_total", "Those of them that a lower tier had.", 0);
}

void AddTokens(Writer& w, const EngineStats& stats) {
  const uint64_t cached = stats.cached_prompt_tokens;
  w.Counter("vllm:prompt_tokens_total", "Prompt tokens of requests that started, cached or not.",
            stats.prompt_tokens);
  w.Counter("vllm:prompt_tokens_cached_total", "Those of them that were not computed.", cached);
  w.Counter("vllm:generation_tokens_total", "Tokens generated.", stats.generated_tokens);
  constexpr char kBySource[] = "vllm:prompt_tokens_by_source_total";
  constexpr char kBySourceHelp[] = "Prompt tokens by where their KV came from.";
  w.Counter(kBySource, kBySourceHelp, "source", "local_compute", stats.prompt_tokens - cached);
  w.Counter(kBySource, kBySourceHelp, "source", "local_cache_hit", cached);
  w.Counter(kBySource, kBySourceHelp, "source", "external_kv_transfer", 0);
  constexpr char kByTier[] = "vllm:prompt_tokens_cached_by_source_total";
  for (const char* source : {"device", "host", "disk", "p2p", "external_unspecified"})
    w.Counter(kByTier, "Cached prompt tokens by tier.", "source", source,
              source == std::string_view("device") ? cached : 0);
  w.to.AddHistogram("vllm:iteration_tokens_total", "Tokens that a step computed.", w.Vllm(),
                    stats.step_tokens.bounds(), stats.step_tokens.counts, stats.step_tokens.sum);
  w.Counter("vllm:num_preemptions_total", "Times that a sequence gave its pages back to wait.",
            stats.num_preemptions);
}

void AddKvBytes(MetricFamilies& to, const KvReport& report) {
  const auto each = [&](const char* name, const char* help, PageStates GroupReport::*amounts) {
    for (const GroupReport& group : report.cache.groups) {
      const PageStates& of = group.*amounts;
      const auto add = [&](const char* state, uint64_t amount) {
        to.AddGauge(name, help, {{"state", state}, {"group", GroupName(group)}},
                    static_cast<double>(amount));
      };
      add("held", of.held);
      add("cached", of.cached);
      add("pinned", of.pinned);
    }
  };
  each("quire_kv_bytes", "The KV budget by state and layer group; free is of no group.",
       &GroupReport::bytes);
  to.AddGauge("quire_kv_bytes", "", {{"state", "free"}, {"group", "any"}},
              static_cast<double>(report.cache.free_bytes));
  each("quire_kv_pages",
       "KV pages by state and layer group; free: as many of the group as the free bytes hold.",
       &GroupReport::pages);
  for (const GroupReport& group : report.cache.groups)
    to.AddGauge("quire_kv_pages", "", {{"state", "free"}, {"group", GroupName(group)}},
                static_cast<double>(group.free_pages));
  to.AddGauge("quire_kv_budget_bytes", "What the states sum up to.", {},
              static_cast<double>(report.plan.budget_bytes));
  constexpr char kCommittedHelp[] = "Memory behind pages, in whole extents of 2 MiB.";
  to.AddGauge("quire_kv_committed_bytes", kCommittedHelp, {{"part", "pages"}},
              static_cast<double>(report.cache.committed_page_bytes));
  to.AddGauge("quire_kv_committed_bytes", kCommittedHelp, {{"part", "slack"}},
              static_cast<double>(report.cache.committed_slack_bytes));
  constexpr char kSlotsHelp[] =
      "Slots of the pages that running sequences hold in the first layer group, each page once; "
      "used: with a token.";
  to.AddGauge("quire_kv_slots", kSlotsHelp, {{"state", "held"}},
              static_cast<double>(report.held_slots));
  to.AddGauge("quire_kv_slots", kSlotsHelp, {{"state", "used"}},
              static_cast<double>(report.used_slots));
  for (const TenantReport& tenant : report.cache.tenants)
    to.AddGauge("quire_tenant_kv_bytes",
                "Bytes of the pages that a tenant has, held or left in the cache.",
                {{"tenant", tenant.tenant}}, static_cast<double>(tenant.bytes.sum()));
  to.AddGauge("quire_tier_bytes", "KV bytes in each tier.", {{"tier", "device"}},
              static_cast<double>(report.taken_bytes()));
  to.AddGauge("quire_tier_state", "0 up, 1 degraded, 2 down.", {{"tier", "device"}}, 0);
}

void AddOurs(const MetricsOptions& options, const EngineStats& stats, const KvReport& report,
             MetricFamilies& to) {
  to.AddHistogram("quire_step_seconds", "Time of steps that computed something.", {},
                  stats.step_seconds.bounds(), stats.step_seconds.counts, stats.step_seconds.sum);
  for (const GroupReport& group : report.cache.groups)
    for (uint32_t reason = 0; reason < kNumEvictReasons; ++reason)
      to.AddCounter("quire_evicted_pages_total", "Pages that left the prefix tree.",
                    {{"group", GroupName(group)},
                     {"reason", std::string(EvictReasonName(static_cast<EvictReason>(reason)))}},
                    static_cast<double>(group.evicted_pages[reason]));
  to.AddCounter("quire_invariant_failures_total", "Bugs of ours that were seen and survived.", {},
                static_cast<double>(report.num_failures));
  constexpr MatchStop kStops[] = {MatchStop::kWhole,        MatchStop::kDiverged,
                                  MatchStop::kPageRounding, MatchStop::kEvicted,
                                  MatchStop::kWindow,       MatchStop::kNamespace};
  for (const MatchStop stop : kStops)
    to.AddCounter("quire_match_stop_total", "Lookups of prompts by where they stopped.",
                  {{"reason", std::string(MatchStopName(stop))}},
                  static_cast<double>(stats.matches.by_stop[static_cast<size_t>(stop)]));
  constexpr char kPreemptions[] = "quire_preemptions_total";
  constexpr char kPreemptionsHelp[] = "Preemptions by how the sequence comes back.";
  to.AddCounter(kPreemptions, kPreemptionsHelp, {{"kind", "offload"}}, 0);
  to.AddCounter(kPreemptions, kPreemptionsHelp, {{"kind", "recompute"}},
                static_cast<double>(stats.num_preemptions));
  to.AddCounter("quire_kv_saturated_total", "Finite K and V values beyond the codec's range.", {},
                static_cast<double>(stats.num_kv_saturated));
  to.AddGauge(
      "quire_build_info", "The program; the value is always 1.",
      {{"version", options.version}, {"isa", options.instruction_set}, {"codec", options.kv_codec}},
      1);
}

}  // namespace

void AddEngineFamilies(const MetricsOptions& options, const EngineStats& stats,
                       const KvReport& report, MetricFamilies* to) {
  Writer writer{options, *to};
  AddQueue(writer, stats);
  AddKvUse(writer, report);
  AddResidency(writer, report.cache.residency);
  AddPrefixCache(writer, stats);
  AddTokens(writer, stats);
  AddKvBytes(*to, report);
  AddOurs(options, stats, report, *to);
}

}  // namespace quire
