// What ReadConfigJson answers to bad input: one error each that names the field.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "base/test_data.h"
#include "plan/config_exercise.h"
#include "plan/config_json.h"

namespace quire {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

Json Config(const std::string& name) {
  return Json::parse(ReadTestFile(TestData("configs/" + name + ".json")));
}

std::string Error(std::string_view text, StatusCode code = StatusCode::kInvalidFile) {
  const auto model = ReadConfigJson(text);
  EXPECT_FALSE(model.ok()) << text;
  if (model.ok()) return "";
  EXPECT_EQ(model.status().code(), code) << text << ": " << model.status().message();
  return model.status().message();
}

std::string ErrorWith(const std::string& name, const std::string& field, const Json& value,
                      StatusCode code = StatusCode::kInvalidFile) {
  Json json = Config(name);
  json[field] = value;
  return Error(json.dump(), code);
}

TEST(ConfigErrors, WhatIsNoJsonIsSaid) {
  EXPECT_THAT(Error(""), HasSubstr("not JSON at byte 1"));
  EXPECT_THAT(Error("{\"model_type\": \"llama\","), HasSubstr("was the file cut?"));
  EXPECT_THAT(Error("{\"a\": 1} x"), HasSubstr("not JSON at byte 10"));
  EXPECT_THAT(Error("{'a': 1}"), HasSubstr("not JSON at byte 2"));
  EXPECT_THAT(Error("{\"a\": NaN}"), HasSubstr("not JSON"));
  EXPECT_THAT(Error("{\"a\": \"\xff\"}"), HasSubstr("not JSON"));
  EXPECT_THAT(Error("{\"a\": 1e999}"), HasSubstr("too large"));
  EXPECT_THAT(Error("[1]"), HasSubstr("the JSON is array: need an object"));
  EXPECT_THAT(Error("null"), HasSubstr("need an object"));
}

TEST(ConfigErrors, DepthAndSizeAreBounded) {
  const std::string deep = "{\"a\":" + std::string(400'000, '[') + std::string(400'000, ']') + "}";
  EXPECT_THAT(Error(deep), HasSubstr("deeper than 32"));
  EXPECT_THAT(Error(std::string(900'000, '[')), HasSubstr("not JSON"));
  EXPECT_THAT(Error(std::string(kMaxConfigBytes + 1, ' ')), HasSubstr("1,048,577 bytes"));
}

TEST(ConfigErrors, UnknownTypesAreRefusedByNameWithTheList) {  // PLN-08
  const std::string error = Error(R"({"model_type": "bert"})", StatusCode::kUnsupported);
  EXPECT_THAT(error, HasSubstr("model_type bert is not known"));
  EXPECT_THAT(error, HasSubstr("qwen2_moe, qwen3"));
  EXPECT_THAT(Error("{}"), HasSubstr("field model_type is missing"));
  EXPECT_THAT(Error(R"({"model_type": 7})"), HasSubstr("field model_type is 7: need a text"));
  EXPECT_THAT(Error(R"({"model_type": "a\u001b[2Jb"})", StatusCode::kUnsupported),
              HasSubstr("a\\x1B[2Jb"));
  EXPECT_THAT(Error(R"({"model_type": "gemma3"})"), HasSubstr("text_config is missing"));
  EXPECT_THAT(Error(R"({"model_type": "gemma3", "text_config": {"model_type": "mamba"}})",
                    StatusCode::kUnsupported),
              HasSubstr("model_type mamba"));
}

TEST(ConfigErrors, AStateBesideTheKvIsRefusedByItsField) {  // PLN-08
  for (const char* field :
       {"mamba_d_state", "ssm_cfg", "linear_num_key_heads", "index_head_dim",
        "num_kv_shared_layers", "attn_layer_period", "use_bidirectional_attention"}) {
    EXPECT_THAT(ErrorWith("llama-3-8b", field, 16, StatusCode::kUnsupported),
                HasSubstr(std::string("field ") + field + " is 16"));
    for (const Json& none : {Json(0), Json(), Json(false), Json::array()}) {
      Json json = Config("llama-3-8b");
      json[field] = none;
      EXPECT_TRUE(ReadConfigJson(json.dump()).ok()) << field;
    }
  }
  Json types = std::vector<std::string>(36, "full_attention");
  types[7] = "linear_attention";
  EXPECT_THAT(ErrorWith("qwen3-8b", "layer_types", types, StatusCode::kUnsupported),
              HasSubstr("\"linear_attention\": of model_type qwen3 only sliding_attention and "
                        "full_attention is planned"));
  types = std::vector<std::string>(32, "sliding_attention");
  EXPECT_THAT(ErrorWith("llama-3-8b", "layer_types", types, StatusCode::kUnsupported),
              HasSubstr("layer_types"));
}

TEST(ConfigErrors, TheShapeMustBeInTheFile) {
  for (const char* field : {"num_hidden_layers", "hidden_size"}) {
    Json json = Config("llama-3-8b");
    json.erase(field);
    EXPECT_THAT(Error(json.dump()), HasSubstr(std::string("field ") + field + " is missing"));
    json[field] = nullptr;
    EXPECT_THAT(Error(json.dump()), HasSubstr(std::string("field ") + field + " is missing"));
  }
  Json json = Config("gpt2");
  json.erase("n_layer");
  EXPECT_THAT(Error(json.dump()), HasSubstr("field n_layer is missing"));
}

TEST(ConfigErrors, EachNumberIsChecked) {
  const std::pair<const char*, const char*> fields[] = {{"llama-3-8b", "num_hidden_layers"},
                                                        {"llama-3-8b", "hidden_size"},
                                                        {"llama-3-8b", "num_attention_heads"},
                                                        {"llama-3-8b", "num_key_value_heads"},
                                                        {"llama-3.2-1b", "head_dim"},
                                                        {"llama-3-8b", "max_position_embeddings"},
                                                        {"llama-3-8b", "vocab_size"},
                                                        {"llama-3-8b", "intermediate_size"},
                                                        {"mistral-7b-v0.1", "sliding_window"},
                                                        {"gemma-3-1b", "sliding_window_pattern"},
                                                        {"deepseek-v3", "kv_lora_rank"},
                                                        {"deepseek-v3", "qk_rope_head_dim"},
                                                        {"deepseek-v3", "qk_nope_head_dim"},
                                                        {"deepseek-v3", "v_head_dim"},
                                                        {"deepseek-v3", "q_lora_rank"},
                                                        {"deepseek-v3", "n_routed_experts"},
                                                        {"deepseek-v3", "n_shared_experts"},
                                                        {"deepseek-v3", "moe_intermediate_size"},
                                                        {"deepseek-v3", "num_experts_per_tok"},
                                                        {"deepseek-v3", "first_k_dense_replace"},
                                                        {"deepseek-v3", "num_nextn_predict_layers"},
                                                        {"gpt2", "n_head"},
                                                        {"gpt2", "n_positions"},
                                                        {"falcon-40b", "num_kv_heads"}};
  for (const auto& [name, field] : fields)
    for (const char* value :
         {"-1", "-9223372036854775808", "4.0", "1e3", "true", "\"8\"", "[8]", "{}", "4294967296",
          "18446744073709551615", "99999999999999999999999"}) {
      const std::string error = ErrorWith(name, field, Json::parse(value));
      EXPECT_THAT(error, HasSubstr(std::string("field ") + field + " is ")) << value;
      EXPECT_THAT(error, HasSubstr("need a whole number")) << value;
    }
  EXPECT_THAT(ErrorWith("llama-3-8b", "num_hidden_layers", 0), HasSubstr("is 0"));
  EXPECT_THAT(ErrorWith("llama-3-8b", "num_hidden_layers", 1025), HasSubstr("up to 1,024"));
  for (const char* field : {"tie_word_embeddings", "attention_bias"})
    EXPECT_THAT(ErrorWith("llama-3-8b", field, 1), HasSubstr("need true or false"));
  EXPECT_THAT(ErrorWith("llama-3-8b", "torch_dtype", 16), HasSubstr("torch_dtype is 16"));
}

TEST(ConfigErrors, NumbersMustFitTogether) {
  EXPECT_THAT(ErrorWith("llama-3-8b", "num_key_value_heads", 5), HasSubstr("a multiple"));
  EXPECT_THAT(ErrorWith("llama-3-8b", "num_key_value_heads", 64), HasSubstr("a multiple"));
  EXPECT_THAT(ErrorWith("llama-3-8b", "hidden_size", 4097), HasSubstr("gives no head_dim"));
  EXPECT_THAT(ErrorWith("gemma-3-1b", "layer_types", {"full_attention"}),
              HasSubstr("need a list of 26 texts"));
  EXPECT_THAT(ErrorWith("gemma-3-1b", "layer_types", 26), HasSubstr("need a list of 26 texts"));
  EXPECT_THAT(ErrorWith("deepseek-v3", "num_experts_per_tok", 257), HasSubstr("at most as many"));
  EXPECT_THAT(ErrorWith("qwen3-30b-a3b", "mlp_only_layers", {48}), HasSubstr("indices of 48"));
  EXPECT_THAT(ErrorWith("qwen3-30b-a3b", "mlp_only_layers", {-1}), HasSubstr("indices of 48"));
  Json json = Config("llama-3-8b");
  json["num_key_value_heads"] = 16;
  json["head_dim"] = 65'536;
  EXPECT_THAT(Error(json.dump(), StatusCode::kUnsupported), HasSubstr("need at most 1,048,576"));
  json = Config("deepseek-v3");
  json["hidden_size"] = json["moe_intermediate_size"] = 1 << 24;
  json["n_routed_experts"] = 1 << 16;
  json["num_hidden_layers"] = 1024;
  EXPECT_THAT(Error(json.dump()), HasSubstr("parameters"));
}

TEST(ConfigErrors, MutatedConfigsAreModelsOrErrors) {
  std::mt19937_64 random(20261130);
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  const Json values[] = {nullptr,
                         true,
                         false,
                         0,
                         1,
                         2,
                         -1,
                         7,
                         1.5,
                         64,
                         65'536,
                         65'537,
                         1 << 24,
                         1 << 30,
                         UINT64_MAX,
                         "x",
                         "",
                         Json::array(),
                         Json::object(),
                         {1, 2}};
  int num_models = 0, num_refused = 0;
  for (const char* name : {"llama-3-8b", "gemma-3-27b", "deepseek-v3", "gpt-oss-20b", "falcon-40b",
                           "qwen1.5-moe-a2.7b", "gpt2", "mistral-7b-v0.1"}) {
    const Json whole = Config(name);
    for (int round = 0; round < 1000; ++round) {
      Json json = whole;
      for (size_t faults = 1 + below(3); faults > 0; --faults) {
        Json& object = json.contains("text_config") ? json["text_config"] : json;
        auto field = object.begin();
        std::advance(field, static_cast<int>(below(object.size())));
        if (below(4) == 0) {
          object.erase(field);
        } else {
          *field = values[below(std::size(values))];
        }
        if (!json.is_object() || object.empty()) break;
      }
      std::string text = json.dump();
      if (below(3) == 0) text[below(text.size())] = static_cast<char>(below(256));
      if (below(8) == 0) text.resize(below(text.size()));
      ++(ExerciseConfig(text) ? num_models : num_refused);
    }
  }
  EXPECT_GT(num_models, 1000);
  EXPECT_GT(num_refused, 1000);
}

}  // namespace
}  // namespace quire
