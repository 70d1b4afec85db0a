#include "server/plan_answers.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "plan/test_models.h"

namespace quire {
namespace {

using Json = nlohmann::json;

PlanAnswers OfStories() {
  KvModel model = Stories();
  model.weight_bytes = 1'000'000;
  EngineOptions options;
  options.context_len = 512;
  options.page_size = 16;
  return {model, options, uint64_t{64} << 20};
}

Json AnswerOf(const Json& body) {
  const auto answer = OfStories().Answer(body.dump());
  EXPECT_TRUE(answer.ok()) << answer.error().message;
  return answer.ok() ? Json::parse(answer.value()) : Json();
}

// PLN-13: 64 MiB hold 170 conversations of 512 tokens in pages of 16.
TEST(PlanAnswers, TheServedModelIsPlannedAsItRuns) {
  const Json plan = AnswerOf(Json::object());
  EXPECT_EQ(plan["schema"], 1);
  EXPECT_EQ(plan["request"]["ctx"], 512);
  EXPECT_EQ(plan["request"]["page_size"], 16);
  EXPECT_EQ(plan["memory"]["kv_budget"]["bytes"], 64 << 20);
  EXPECT_EQ(plan["memory"]["total"]["bytes"], (64 << 20) + 1'000'000);
  EXPECT_EQ(plan["answers"]["users_at_context"], 170);
  EXPECT_EQ(plan["verdict"]["fits"], true);
  EXPECT_EQ(AnswerOf({{"users", 171}})["verdict"]["fits"], false);
  EXPECT_EQ(AnswerOf({{"page_size", 64}})["answers"]["users_at_context"], 204);
  EXPECT_EQ(AnswerOf({{"kv_memory_bytes", 393'216}})["answers"]["users_at_context"], 1);
  EXPECT_EQ(AnswerOf({{"kv", "f32"}})["kv"]["codec"], "f32");
}

TEST(PlanAnswers, WhatIsSaidOfTheMemoryGoesBeforeTheServersBudget) {
  const uint64_t gib = uint64_t{1} << 30;
  const uint64_t work = gib / 8;  // the least for work memory
  EXPECT_EQ(AnswerOf({{"memory_bytes", gib}})["memory"]["kv_budget"]["bytes"],
            gib - work - 1'000'000);
  EXPECT_EQ(AnswerOf({{"memory_bytes", gib}, {"cache_share", 0.5}})["memory"]["kv_budget"]["bytes"],
            gib / 2);
}

TEST(PlanAnswers, AnotherModelIsAShapeOrAConfig) {
  Json body = {{"shape", "layers=80,kv_heads=8,head_dim=128"},
               {"ctx", 32'000},
               {"memory_bytes", 640'000'000'000},
               {"cache_share", 0.5}};
  const Json plan = AnswerOf(body);
  EXPECT_EQ(plan["kv"]["token_bytes_f16"], 327'680);
  EXPECT_EQ(plan["answers"]["users_at_context"], 30);
  body.erase("memory_bytes");
  body["gpus"] = "8xH100";
  EXPECT_EQ(AnswerOf(body)["answers"]["users_at_context"], 30);
  body.erase("shape");
  body["config"] = {{"model_type", "llama"},      {"hidden_size", 4096},
                    {"intermediate_size", 14336}, {"num_hidden_layers", 32},
                    {"num_attention_heads", 32},  {"num_key_value_heads", 8},
                    {"vocab_size", 128'256},      {"max_position_embeddings", 8192}};
  EXPECT_EQ(AnswerOf(body)["kv"]["token_bytes_f16"], 131'072);
  EXPECT_EQ(AnswerOf({{"window", 64}, {"users", nullptr}})["kv"]["groups"][0]["window"], 64);
}

TEST(PlanAnswers, WhatIsWrongIsNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {"{\"user\": 3}", "user"},
      {"{\"users\": 0}", "users"},
      {"{\"users\": 1000001}", "users"},
      {"{\"users\": \"3\"}", "users"},
      {"{\"ctx\": -1}", "ctx"},
      {"{\"ctx\": 1.5}", "ctx"},
      {"{\"kv\": \"q8\"}", "kv"},
      {"{\"gpus\": \"8xH101\"}", "gpus"},
      {"{\"memory_bytes\": 0}", "memory_bytes"},
      {"{\"memory_bytes\": 1.5}", "memory_bytes"},
      {"{\"cache_share\": \"half\"}", "cache_share"},
      {"{\"shape\": \"layers=x\"}", "shape"},
      {"{\"shape\": 3}", "shape"},
      {"{\"config\": []}", "config"},
      {"{\"config\": {\"model_type\": \"newarch\"}}", "config"},
      {"{\"config\": {}, \"shape\": \"layers=1\"}", "config"},
      {"{\"ttft_seconds\": 0}", "ttft_seconds"},
  };
  for (const auto& [body, param] : cases) {
    const auto answer = OfStories().Answer(body);
    ASSERT_FALSE(answer.ok()) << body;
    EXPECT_EQ(answer.error().status, 400) << body;
    EXPECT_EQ(answer.error().param, param) << body;
  }
  for (const char* body :
       {"", "[]", "{\"page_size\": 17}", "{\"cache_share\": 2}", "{\"shared_prefix\": 512}",
        "{\"weights_dtype\": \"q9\"}", "{\"shape\": \"layers=80,kv_heads=8,head_dim=128\"}"}) {
    const auto answer = OfStories().Answer(body);
    ASSERT_FALSE(answer.ok()) << body;
    EXPECT_EQ(answer.error().status, 400) << body;
    EXPECT_FALSE(answer.error().message.empty()) << body;
  }
}

}  // namespace
}  // namespace quire
