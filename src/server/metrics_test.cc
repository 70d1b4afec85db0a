#include "server/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "base/test_data.h"
#include "server/metric_text.h"

namespace quire {
namespace {

MetricsOptions Options() {
  return {.model_name = "small",
          .version = "0.1.0",
          .instruction_set = "avx2",
          .kv_codec = "f16",
          .context_len = 2048};
}

std::unique_ptr<Engine> LoadSmall(uint64_t kv_memory_bytes = uint64_t{16} << 20) {
  EngineOptions options;
  options.num_threads = 1;
  options.page_size = 16;
  options.kv_memory_bytes = kv_memory_bytes;
  auto engine = Engine::Load(TestData("models/llama-gqa.gguf"), options, {});
  EXPECT_TRUE(engine.ok()) << engine.status().message();
  return std::move(engine).value();
}

std::shared_ptr<Answer> Submit(Engine& engine, size_t prompt_len, uint32_t max_tokens) {
  Request request{.prompt = std::vector<TokenId>(prompt_len, 7), .max_tokens = max_tokens};
  for (size_t i = 0; i < prompt_len; ++i) request.prompt[i] = static_cast<TokenId>(i * 31 % 250);
  request.tenant = "ada";
  request.sampling.temperature = 0;
  request.sampling.ignore_eos = true;
  auto answer = engine.Submit(std::move(request));
  EXPECT_TRUE(answer.ok()) << answer.status().message();
  return std::move(answer).value();
}

// What the server would make of an answer that has ended.
CallSummary SummaryOf(const Answer& answer) {
  return {.num_prompts = 1,
          .num_choices = answer.num_choices(),
          .prompt_tokens = answer.prompt().prompt_len,
          .cached_tokens = answer.prompt().num_cached,
          .generated_tokens = answer.tokens(0).size(),
          .longest_answer = answer.tokens(0).size(),
          .num_preemptions = answer.num_preemptions(),
          .finish_reasons = {"length"},
          .first_token_seconds = answer.prompt().first_token_seconds,
          .total_seconds = answer.SecondsSinceSubmit()};
}

void Complete(Engine& engine, Metrics& metrics, size_t prompt_len, uint32_t max_tokens) {
  const auto answer = Submit(engine, prompt_len, max_tokens);
  ASSERT_TRUE(answer->WaitForAll().ok());
  metrics.ObserveCall(SummaryOf(*answer));
}

MetricText Scrape(const Metrics& metrics, Engine* engine) {
  auto text = MetricText::Parse(metrics.Text(engine));
  EXPECT_TRUE(text.ok()) << text.status().message();
  return std::move(text).value();
}

struct Family {
  const char* type;
  std::set<std::string> labels;
};

// Names, types and labels as notes and docs/server.md promise them.
std::map<std::string, Family> Promised() {
  std::map<std::string, Family> all;
  const auto vllm = [&](const char* type, std::initializer_list<const char*> names,
                        const char* label = nullptr) {
    for (const char* name : names) {
      Family& family = all["vllm:" + std::string(name)];
      family = {type, {"model_name", "engine"}};
      if (label != nullptr) family.labels.insert(label);
    }
  };
  vllm("gauge", {"num_requests_running", "num_requests_waiting", "kv_cache_usage_perc",
                 "gpu_cache_usage_perc", "gpu_prefix_cache_hit_rate"});
  vllm("gauge", {"num_requests_waiting_by_reason"}, "reason");
  vllm("counter",
       {"prefix_cache_queries_total", "prefix_cache_hits_total", "gpu_prefix_cache_queries_total",
        "gpu_prefix_cache_hits_total", "external_prefix_cache_queries_total",
        "external_prefix_cache_hits_total", "prompt_tokens_total", "prompt_tokens_cached_total",
        "generation_tokens_total", "num_preemptions_total"});
  vllm("counter", {"prompt_tokens_by_source_total", "prompt_tokens_cached_by_source_total"},
       "source");
  vllm("counter", {"request_success_total"}, "finished_reason");
  vllm("histogram", {"time_to_first_token_seconds",
                     "inter_token_latency_seconds",
                     "request_time_per_output_token_seconds",
                     "time_per_output_token_seconds",
                     "e2e_request_latency_seconds",
                     "request_queue_time_seconds",
                     "request_prefill_time_seconds",
                     "request_decode_time_seconds",
                     "request_inference_time_seconds",
                     "request_prompt_tokens",
                     "request_generation_tokens",
                     "request_max_num_generation_tokens",
                     "request_params_max_tokens",
                     "request_prefill_kv_computed_tokens",
                     "request_params_n",
                     "request_num_preemptions",
                     "iteration_tokens_total",
                     "kv_block_lifetime_seconds",
                     "kv_block_idle_before_evict_seconds",
                     "kv_block_reuse_gap_seconds"});
  all["vllm:admission_rejections_total"] = {"counter", {"model_name", "reason"}};
  all["vllm:cache_config_info"] = {
      "gauge",
      {"engine", "block_size", "num_gpu_blocks", "num_cpu_blocks", "cache_dtype",
       "kv_cache_size_tokens", "enable_prefix_caching"}};
  all["http_requests_total"] = {"counter", {"method", "status", "handler"}};
  all["http_request_duration_seconds"] = {"histogram", {"method", "handler"}};
  all["process_cpu_seconds_total"] = {"counter", {}};
  for (const char* name : {"start_time_seconds", "virtual_memory_bytes", "resident_memory_bytes",
                           "open_fds", "max_fds"})
    all["process_" + std::string(name)] = {"gauge", {}};
  all["quire_kv_bytes"] = all["quire_kv_pages"] = {"gauge", {"state", "group"}};
  all["quire_kv_budget_bytes"] = {"gauge", {}};
  all["quire_kv_committed_bytes"] = {"gauge", {"part"}};
  all["quire_kv_slots"] = {"gauge", {"state"}};
  all["quire_tier_bytes"] = all["quire_tier_state"] = {"gauge", {"tier"}};
  all["quire_match_stop_total"] = {"counter", {"reason"}};
  all["quire_preemptions_total"] = {"counter", {"kind"}};
  all["quire_rejections_total"] = {"counter", {"code"}};
  all["quire_disconnects_total"] = {"counter", {"phase"}};
  all["quire_stalled_streams"] = {"gauge", {}};
  all["quire_engine_stalls_total"] = {"counter", {}};
  all["quire_kv_saturated_total"] = {"counter", {}};
  all["quire_step_seconds"] = {"histogram", {}};
  all["quire_evicted_pages_total"] = {"counter", {"group", "reason"}};
  all["quire_invariant_failures_total"] = {"counter", {}};
  all["quire_tenant_kv_bytes"] = {"gauge", {"tenant"}};
  all["quire_build_info"] = {"gauge", {"version", "isa", "codec"}};
  return all;
}

// The family of a sample: without _bucket, _sum and _count.
std::string FamilyOf(const MetricText& text, const std::string& name) {
  if (text.types().contains(name)) return name;
  for (const std::string_view end : {"_bucket", "_sum", "_count"})
    if (name.ends_with(end)) return name.substr(0, name.size() - end.size());
  return name;
}

// API-19, and the table of notes.
TEST(Metrics, NamesTypesAndLabelsAreThePromisedOnes) {
  auto engine = LoadSmall();
  Metrics metrics(Options());
  Complete(*engine, metrics, 40, 4);
  metrics.ObserveHttp("POST", 200, "/v1/completions", 0.1);
  metrics.CountRejection("queue_full");
  const MetricText text = Scrape(metrics, engine.get());
  std::map<std::string, std::set<std::string>> labels;
  for (const MetricSample& sample : text.samples()) {
    auto& names = labels[FamilyOf(text, sample.name)];
    for (const auto& [name, value] : sample.labels)
      if (name != "le") names.insert(name);
  }
  const auto promised = Promised();
  for (const auto& [name, family] : promised) {
    ASSERT_TRUE(text.types().contains(name)) << name;
    EXPECT_EQ(text.types().at(name), family.type) << name;
    EXPECT_EQ(labels[name], family.labels) << name;
  }
  for (const auto& [name, type] : text.types())
    EXPECT_TRUE(promised.contains(name)) << name << " is not in the list";
}

TEST(Metrics, BothNamesOfKvUsageHaveHeldBytesOfTheBudget) {  // API-18, API-19
  auto engine = LoadSmall();
  Metrics metrics(Options());
  const auto answer = Submit(*engine, 100, 1500);
  answer->Wait(0, 1);
  const MetricText busy = Scrape(metrics, engine.get());
  const double held = *busy.Sum("quire_kv_bytes", {{"state", "held"}});
  EXPECT_GT(held, 0);
  EXPECT_EQ(*busy.Sum("vllm:kv_cache_usage_perc"), held / *busy.Sum("quire_kv_budget_bytes"));
  EXPECT_EQ(*busy.Sum("vllm:gpu_cache_usage_perc"), *busy.Sum("vllm:kv_cache_usage_perc"));
  EXPECT_GE(*busy.Sum("quire_kv_slots", {{"state", "used"}}), 100);
  EXPECT_GE(*busy.Sum("quire_kv_slots", {{"state", "held"}}),
            *busy.Sum("quire_kv_slots", {{"state", "used"}}));
  engine->Abort(answer);
  engine->Drain();
  const MetricText idle = Scrape(metrics, engine.get());
  EXPECT_EQ(*idle.Sum("vllm:kv_cache_usage_perc"), 0);
  EXPECT_EQ(*idle.Sum("quire_kv_slots"), 0);
  EXPECT_GT(*idle.Sum("quire_kv_bytes", {{"state", "cached"}}), 0);
}

void ExpectSums(const MetricText& text) {
  EXPECT_EQ(*text.Sum("quire_kv_bytes"), *text.Sum("quire_kv_budget_bytes"));
  EXPECT_EQ(*text.Sum("vllm:num_requests_waiting_by_reason"),
            *text.Sum("vllm:num_requests_waiting"));
  EXPECT_EQ(*text.Sum("vllm:prompt_tokens_by_source_total"), *text.Sum("vllm:prompt_tokens_total"));
  EXPECT_EQ(*text.Sum("vllm:prompt_tokens_cached_by_source_total"),
            *text.Sum("vllm:prompt_tokens_cached_total"));
  EXPECT_EQ(text.Sum("quire_tenant_kv_bytes").value_or(0) +
                *text.Sum("quire_kv_bytes", {{"state", "free"}}),
            *text.Sum("quire_kv_budget_bytes"));
  EXPECT_EQ(*text.Sum("quire_tier_bytes") + *text.Sum("quire_kv_bytes", {{"state", "free"}}),
            *text.Sum("quire_kv_budget_bytes"));
}

TEST(Metrics, SumsHoldAtEachScrape) {
  auto engine = LoadSmall(300 << 10);  // so small that requests wait and are preempted
  Metrics metrics(Options());
  std::vector<std::shared_ptr<Answer>> answers;
  for (size_t i = 0; i < 12; ++i) answers.push_back(Submit(*engine, 30 + i * 17, 60));
  PinId pin = 0;
  bool had_waiting = false, had_pinned = false;
  for (int i = 0; i < 40; ++i) {
    if (i == 5) {
      answers[0]->Wait(0, 0);  // its first pages are in the tree
      engine->Ask([&](StepLoop& loop) {
        const NamespaceId ns =
            loop.cache().Namespace({.tenant = "ada", .identity = loop.runner().identity()}).value();
        std::vector<TokenId> tokens(16);
        for (size_t t = 0; t < tokens.size(); ++t) tokens[t] = static_cast<TokenId>(t * 31 % 250);
        EXPECT_EQ(loop.cache().Pin(ns, tokens, 0, &pin), 16u);
      });
    }
    const MetricText text = Scrape(metrics, engine.get());
    ExpectSums(text);
    had_waiting = had_waiting || *text.Sum("vllm:num_requests_waiting") > 0;
  }
  for (const auto& answer : answers) EXPECT_TRUE(answer->WaitForAll().ok());
  const MetricText text = Scrape(metrics, engine.get());
  ExpectSums(text);
  had_pinned = *text.Sum("quire_kv_bytes", {{"state", "pinned"}}) > 0;
  EXPECT_TRUE(had_waiting);
  EXPECT_TRUE(had_pinned);
}

TEST(Metrics, HitsAreCountersInTokens) {  // API-16
  auto engine = LoadSmall();
  Metrics metrics(Options());
  Complete(*engine, metrics, 321, 1);
  Complete(*engine, metrics, 321, 1);
  MetricText text = Scrape(metrics, engine.get());
  EXPECT_EQ(*text.Sum("vllm:prefix_cache_queries_total"), 642);
  EXPECT_EQ(*text.Sum("vllm:prefix_cache_hits_total"), 320);
  EXPECT_EQ(*text.Sum("vllm:gpu_prefix_cache_hits_total"), 320);
  EXPECT_EQ(*text.Sum("vllm:prompt_tokens_cached_total"), 320);
  Complete(*engine, metrics, 9, 1);  // no hit: nothing falls
  text = Scrape(metrics, engine.get());
  EXPECT_EQ(*text.Sum("vllm:prefix_cache_queries_total"), 651);
  EXPECT_EQ(*text.Sum("vllm:prefix_cache_hits_total"), 320);
}

TEST(Metrics, APreemptedRequestIsCountedOnce) {  // API-17
  auto engine = LoadSmall();
  Metrics metrics(Options());
  const auto answer = Submit(*engine, 50, 400);
  for (uint32_t seen : {10u, 50u}) {
    answer->Wait(0, seen);
    engine->Ask([](StepLoop& loop) { loop.PreemptAll(); });
  }
  ASSERT_TRUE(answer->WaitForAll().ok());
  metrics.ObserveCall(SummaryOf(*answer));
  const MetricText text = Scrape(metrics, engine.get());
  EXPECT_EQ(*text.Sum("vllm:prompt_tokens_total"), 50);
  EXPECT_EQ(*text.Sum("vllm:prefix_cache_queries_total"), 50);
  EXPECT_EQ(*text.Sum("vllm:request_success_total"), 1);
  EXPECT_EQ(*text.Sum("vllm:num_preemptions_total"), 2);
  EXPECT_EQ(*text.Sum("quire_preemptions_total", {{"kind", "recompute"}}), 2);
  EXPECT_EQ(*text.Sum("vllm:request_num_preemptions_sum"), 2);
  EXPECT_EQ(*text.Sum("vllm:generation_tokens_total"), 400);
}

TEST(Metrics, AnEndedRequestIsInEachHistogramOfRequests) {
  Metrics metrics(Options());
  metrics.ObserveCall({.num_prompts = 1,
                       .num_choices = 2,
                       .max_tokens = 21,
                       .prompt_tokens = 100,
                       .cached_tokens = 64,
                       .generated_tokens = 30,
                       .longest_answer = 21,
                       .num_preemptions = 1,
                       .finish_reasons = {"stop", "length"},
                       .read_seconds = 0.5,
                       .queue_seconds = 1,
                       .first_token_seconds = 3,
                       .decode_seconds = 10,
                       .total_seconds = 13.5,
                       .token_gaps_s = {0.25f, 0.5f}});
  const MetricText text = Scrape(metrics, nullptr);
  const auto sum = [&](const std::string& name) { return *text.Sum("vllm:" + name + "_sum"); };
  EXPECT_EQ(sum("time_to_first_token_seconds"), 3.5);
  EXPECT_EQ(sum("inter_token_latency_seconds"), 0.75);
  EXPECT_EQ(sum("request_queue_time_seconds"), 1);
  EXPECT_EQ(sum("request_prefill_time_seconds"), 2);
  EXPECT_EQ(sum("request_decode_time_seconds"), 10);
  EXPECT_EQ(sum("request_inference_time_seconds"), 12);
  EXPECT_EQ(sum("e2e_request_latency_seconds"), 13.5);
  EXPECT_EQ(sum("request_time_per_output_token_seconds"), 0.5);
  EXPECT_EQ(sum("time_per_output_token_seconds"), 0.5);
  EXPECT_EQ(sum("request_prompt_tokens"), 100);
  EXPECT_EQ(sum("request_prefill_kv_computed_tokens"), 36);
  EXPECT_EQ(sum("request_generation_tokens"), 30);
  EXPECT_EQ(sum("request_max_num_generation_tokens"), 21);
  EXPECT_EQ(sum("request_params_max_tokens"), 21);
  EXPECT_EQ(sum("request_params_n"), 2);
  EXPECT_EQ(*text.Sum("vllm:request_success_total", {{"finished_reason", "length"}}), 1);
  EXPECT_EQ(*text.Sum("vllm:request_success_total"), 1);
  // 1, 2, 5 x 10^k up to the context of 2048.
  EXPECT_EQ(*text.Sum("vllm:request_prompt_tokens_bucket", {{"le", "2000"}}), 1);
  EXPECT_FALSE(text.Sum("vllm:request_prompt_tokens_bucket", {{"le", "5000"}}).has_value());
  EXPECT_EQ(*text.Sum("vllm:time_to_first_token_seconds_bucket", {{"le", "2.5"}}), 0);
  EXPECT_EQ(*text.Sum("vllm:time_to_first_token_seconds_bucket", {{"le", "5"}}), 1);
}

TEST(Metrics, RefusalsAndDisconnectsAreNoEndsOfRequests) {
  Metrics metrics(Options());
  metrics.ObserveCall({.status = 503, .error_code = "queue_full"});
  metrics.ObserveCall({.status = 499, .num_prompts = 1, .phase = "prefill"});
  metrics.ObserveCall({.status = 500, .error_code = "internal", .num_prompts = 1});
  metrics.ObserveCall({.status = 400,
                       .error_code = "aborted",
                       .num_prompts = 1,
                       .finish_reasons = {"stop", "abort"}});
  const MetricText text = Scrape(metrics, nullptr);
  EXPECT_EQ(*text.Sum("quire_rejections_total", {{"code", "queue_full"}}), 1);
  EXPECT_EQ(*text.Sum("quire_disconnects_total", {{"phase", "prefill"}}), 1);
  EXPECT_EQ(*text.Sum("quire_disconnects_total"), 1);
  EXPECT_EQ(*text.Sum("vllm:request_success_total", {{"finished_reason", "abort"}}), 2);
  EXPECT_EQ(*text.Sum("vllm:request_success_total", {{"finished_reason", "error"}}), 1);
  EXPECT_EQ(*text.Sum("vllm:request_success_total"), 3);
}

TEST(Metrics, AStallIsCountedOnceWhileItLasts) {
  Metrics metrics(Options());
  for (const double seconds : {0., 9.9, 10.1, 11., 30., 0., 12.}) metrics.NoteStall(seconds);
  EXPECT_EQ(*Scrape(metrics, nullptr).Sum("quire_engine_stalls_total"), 2);
}

TEST(Metrics, LabelsOfStrangersAreBounded) {
  Metrics metrics(Options());
  for (int i = 0; i < 100; ++i)
    metrics.ObserveHttp("METHOD" + std::to_string(i), 405, "none", 0.001);
  const MetricText text = Scrape(metrics, nullptr);
  EXPECT_EQ(*text.Sum("http_requests_total", {{"method", "other"}, {"status", "405"}}), 100);
  EXPECT_EQ(*text.Sum("http_requests_total"), 100);
}

}  // namespace
}  // namespace quire
