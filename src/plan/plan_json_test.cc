#include "plan/plan_json.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "plan/test_models.h"

namespace quire {
namespace {

using Json = nlohmann::ordered_json;

Json JsonOf(KvModel model) {
  PlanRequest request{.model = std::move(model), .num_users = 3, .context_len = 4096};
  request.memory.gpus = ParseAccelerators("8xH100").value();
  auto plan = MakePlan(std::move(request));
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  return PlanJson(*plan);
}

// Names of all values, "kv.groups[].layers", without duplicates.
void CollectNames(const Json& json, const std::string& path, std::vector<std::string>* names) {
  if (json.is_object())
    for (const auto& [name, value] : json.items())
      CollectNames(value, path.empty() ? name : path + "." + name, names);
  else if (json.is_array() && !json.empty())
    CollectNames(json.front(), path + "[]", names);
  else
    names->push_back(path);
}

// A name that goes or changes its meaning needs a new schema number.
TEST(PlanJson, TheFieldsOfSchema1) {
  std::vector<std::string> names;
  CollectNames(JsonOf(Llama70B()), "", &names);
  for (const char* name : {"schema",
                           "model.name",
                           "model.architecture",
                           "model.source",
                           "model.runs",
                           "model.attention",
                           "model.context_length",
                           "model.parameters",
                           "request.users",
                           "request.ctx",
                           "request.kv",
                           "request.page_size",
                           "request.shared_prefix",
                           "kv.mark",
                           "kv.token_bytes_f16",
                           "kv.groups[].name",
                           "kv.groups[].layers",
                           "kv.groups[].window",
                           "kv.groups[].page_bytes",
                           "kv.groups[].counted_page_bytes",
                           "kv.groups[].sealed_page_bytes",
                           "kv.groups[].conversation.pages",
                           "kv.groups[].conversation.counted_bytes",
                           "kv.conversation.formula_bytes_f16",
                           "kv.conversation.page_bytes",
                           "kv.conversation.counted_bytes",
                           "kv.conversation.rounding_bytes",
                           "kv.all_users.counted_bytes",
                           "kv.all_users.committed_bytes",
                           "kv.all_users.slack_bytes",
                           "memory.total.bytes",
                           "memory.weights.bytes",
                           "memory.weights.mark",
                           "memory.kv_budget.bytes",
                           "memory.needed_bytes",
                           "memory.left_bytes",
                           "answers.users_at_context",
                           "answers.context_at_users",
                           "answers.memory_bytes_for_all",
                           "answers.best_codec",
                           "codecs[].codec",
                           "codecs[].runs",
                           "codecs[].users_at_context",
                           "codecs[].fits",
                           "savings.by_formula[].bytes",
                           "savings.paging.paged_users",
                           "roofline.ttft_seconds",
                           "roofline.tpot_seconds",
                           "roofline.mark",
                           "verdict.fits",
                           "explain[].formula"})
    EXPECT_NE(std::ranges::find(names, name), names.end()) << name;
  EXPECT_EQ(JsonOf(Llama70B())["schema"], 1);
}

void ExpectIntegers(const Json& json, const std::string& path) {
  for (const auto& [name, value] : json.items()) {
    const std::string inner = path + "." + name;
    if (value.is_structured()) {
      ExpectIntegers(value, inner);
    } else if (name == "bytes" || name.ends_with("_bytes")) {
      EXPECT_TRUE(value.is_number_unsigned() || value.is_null()) << inner;
    }
  }
}

TEST(PlanJson, BytesAreIntegers) {
  ExpectIntegers(JsonOf(Llama70B()), "");
  ExpectIntegers(JsonOf(DeepSeekV3()), "");
  ExpectIntegers(JsonOf(Gemma27B()), "");
}

TEST(PlanJson, PartsSumUp) {
  const Json json = JsonOf(Gemma27B());
  uint64_t sum = 0;
  for (const Json& group : json["kv"]["groups"])
    sum += group["conversation"]["counted_bytes"].get<uint64_t>();
  EXPECT_EQ(json["kv"]["conversation"]["counted_bytes"], sum);
  EXPECT_EQ(json["kv"]["all_users"]["counted_bytes"], 3 * sum);
  EXPECT_EQ(json["memory"]["kv_needed"]["bytes"], 3 * sum);
  EXPECT_EQ(json["kv"]["all_users"]["committed_bytes"],
            3 * sum + json["kv"]["all_users"]["slack_bytes"].get<uint64_t>());
}

TEST(PlanJson, WhatIsNotKnownIsNull) {
  const Json json = JsonOf(Gemma27B());  // without a number of parameters
  EXPECT_TRUE(json["roofline"].is_null());
  EXPECT_TRUE(json["memory"]["weights"]["bytes"].is_null());
  EXPECT_FALSE(JsonOf(DeepSeekV3())["kv"]["runs"]);
}

}  // namespace
}  // namespace quire
