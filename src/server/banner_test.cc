#include "server/banner.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/test_data.h"
#include "server/metric_text.h"
#include "server/metrics.h"

namespace quire {
namespace {

std::unique_ptr<Engine> LoadSmall(const std::string& model) {
  EngineOptions options;
  options.num_threads = 1;
  options.page_size = 16;
  options.kv_memory_bytes = (uint64_t{16} << 20) + 12345;
  auto engine = Engine::Load(TestData("models/" + model), options, {});
  EXPECT_TRUE(engine.ok()) << engine.status().message();
  return std::move(engine).value();
}

// The number after `before`, without its commas.
uint64_t NumberAfter(const std::string& text, const std::string& before) {
  const size_t place = text.find(before);
  EXPECT_NE(place, std::string::npos) << before << " in\n" << text;
  if (place == std::string::npos) return 0;
  std::string digits;
  for (size_t i = place + before.size(); i < text.size(); ++i) {
    if (text[i] == ',' && i + 1 < text.size() && std::isdigit(text[i + 1])) continue;
    if (!std::isdigit(static_cast<unsigned char>(text[i]))) break;
    digits += text[i];
  }
  return digits.empty() ? 0 : std::stoull(digits);
}

// The banner, /metrics and /quire/v1/cache of one moment tell the same numbers, to the byte.
void ExpectSameNumbers(Engine& engine) {
  EngineStats stats;
  KvReport report;
  engine.Ask([&](StepLoop& loop) {
    stats = loop.stats();
    report = ReadKvReport(engine, loop, stats);
  });
  const std::string banner = Banner({.version = "0.1.0", .model_name = "small"}, report);
  const auto json = nlohmann::json::parse(KvReportJson(report));
  const Metrics observed({.model_name = "small",
                          .version = "1",
                          .instruction_set = "avx2",
                          .kv_codec = "f16",
                          .context_len = 2048});
  const MetricText metrics = MetricText::Parse(observed.Text(stats, report)).value();

  const uint64_t budget = NumberAfter(banner, "pool     ");
  EXPECT_EQ(budget, engine.kv_budget_bytes());
  EXPECT_EQ(budget, json["budget_bytes"]);
  EXPECT_EQ(json["budget_source"], "as given");
  EXPECT_NE(banner.find(" tokens; as given\n"), std::string::npos) << banner;
  EXPECT_EQ(static_cast<double>(budget), metrics.Sum("quire_kv_budget_bytes"));
  const uint64_t pages = NumberAfter(banner, " bytes (16.01 MiB), ");
  EXPECT_EQ(pages, json["pool_pages"]);
  const uint64_t tokens = NumberAfter(banner, " pages, ");
  EXPECT_EQ(tokens, json["pool_tokens"]);
  EXPECT_EQ(tokens, pages * 16);
  for (const MetricSample& sample : metrics.samples()) {
    if (sample.name != "vllm:cache_config_info") continue;
    EXPECT_EQ(sample.labels.at("num_gpu_blocks"), std::to_string(pages));
    EXPECT_EQ(sample.labels.at("kv_cache_size_tokens"), std::to_string(tokens));
    EXPECT_EQ(sample.labels.at("block_size"), "16");
  }
  uint64_t sum = 0;
  for (const char* state : {"held", "cached", "pinned", "free"}) {
    const uint64_t bytes = json[std::string(state) + "_bytes"];
    EXPECT_EQ(static_cast<double>(bytes), metrics.Sum("quire_kv_bytes", {{"state", state}}));
    sum += bytes;
  }
  EXPECT_EQ(sum, budget);
  for (const auto& group : json["groups"]) {
    EXPECT_EQ(NumberAfter(banner, group["name"].get<std::string>() + ": "), group["page_bytes"]);
    for (const char* state : {"held", "cached", "pinned"}) {
      const std::map<std::string, std::string> labels = {{"state", state},
                                                         {"group", group["name"]}};
      EXPECT_EQ(metrics.Sum("quire_kv_pages", labels), group[state]["pages"].get<double>());
      EXPECT_EQ(metrics.Sum("quire_kv_bytes", labels), group[state]["bytes"].get<double>());
    }
  }
  EXPECT_EQ(NumberAfter(banner, "the longest "), json["longest_request_tokens"]);
}

TEST(Banner, TellsWhatMetricsAndCacheTell) {
  auto engine = LoadSmall("llama-gqa.gguf");
  ExpectSameNumbers(*engine);
  Request request{.prompt = std::vector<TokenId>(100, 7), .max_tokens = 1500};
  request.sampling.ignore_eos = true;
  const auto answer = engine->Submit(request).value();
  answer->Wait(0, 5);
  ExpectSameNumbers(*engine);
  engine->Abort(answer);
  engine->Drain();
  ExpectSameNumbers(*engine);
}

TEST(Banner, SizesAreShownInAUnitToo) {
  KvReport report;
  report.plan.budget_bytes = uint64_t{5} << 30;
  const std::string banner = Banner({.weight_bytes = 1'500'000}, report);
  EXPECT_NE(banner.find("1,500,000 bytes (1.43 MiB)\n"), std::string::npos) << banner;
  EXPECT_NE(banner.find("5,368,709,120 bytes (5.00 GiB), "), std::string::npos) << banner;
}

TEST(Banner, ThePlanIsTheWholePool) {
  auto engine = LoadSmall("llama-gqa.gguf");
  KvReport report;
  size_t stride = 0;
  engine->Ask([&](StepLoop& loop) {
    report = ReadKvReport(*engine, loop, loop.stats());
    stride = loop.cache().pool().stride(OpenClass(0));
  });
  EXPECT_EQ(report.plan.num_pages, engine->kv_budget_bytes() / stride);
}

}  // namespace
}  // namespace quire
