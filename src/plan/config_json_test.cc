#include "plan/config_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/test_data.h"
#include "plan/formula_bytes.h"

namespace quire {
namespace {

using Json = nlohmann::json;
using testing::Contains;
using testing::HasSubstr;

Json Config(const std::string& name) {
  return Json::parse(ReadTestFile(TestData("configs/" + name + ".json")));
}

KvModel Read(const Json& json) {
  const auto model = ReadConfigJson(json.dump());
  EXPECT_TRUE(model.ok()) << model.status().message();
  return model.ok() ? *model : KvModel();
}

std::string GroupsText(const KvModel& model) {
  std::string text;
  for (const KvLayers& layers : model.groups)
    text += std::to_string(layers.num_layers) + " of " +
            (layers.window == 0 ? "all" : std::to_string(layers.window)) + "; ";
  return text;
}

struct Golden {
  std::string name;
  uint64_t bytes_per_token;  // at 16 bits
  std::string groups;
  uint64_t params;
  uint64_t active_params;  // 0: as many
};

// Bytes a token = layers x KV heads x (head_dim of K + of V) x 2, of latent attention layers x
// (rank
// + rope) x 2. Parameters: those that the models' publishers give (model cards, safetensors), of a
// multimodal model without its vision part, of DeepSeek V3 and GLM 4.5 without the layers for
// further tokens.
const Golden kGoldens[] = {
    {"command-r", 1'310'720, "40 of all; ", 34'980'831'232, 0},
    {"command-r7b", 131'072, "8 of all; 24 of 4096; ", 8'028'033'024, 0},
    {"deepseek-v2", 69'120, "60 of all; ", 235'741'434'880, 21'375'800'320},
    {"deepseek-v2-lite", 31'104, "27 of all; ", 15'706'484'224, 2'661'150'208},
    {"deepseek-v3", 70'272, "61 of all; ", 671'026'419'200, 37'552'297'472},
    {"falcon-40b", 122'880, "60 of all; ", 41'303'293'952, 0},
    {"falcon-7b", 8'192, "32 of all; ", 6'921'720'704, 0},
    {"gemma-2-27b", 376'832, "23 of all; 23 of 4096; ", 27'227'128'320, 0},
    {"gemma-2-9b", 344'064, "21 of all; 21 of 4096; ", 9'241'705'984, 0},
    {"gemma-2b", 18'432, "18 of all; ", 2'506'172'416, 0},
    {"gemma-3-1b", 26'624, "4 of all; 22 of 512; ", 999'885'952, 0},
    {"gemma-3-27b", 507'904, "10 of all; 52 of 1024; ", 27'009'346'304, 0},
    {"gemma-3-4b", 139'264, "5 of all; 29 of 1024; ", 3'880'263'168, 0},
    {"gemma-7b", 458'752, "28 of all; ", 8'537'680'896, 0},
    {"glm-4-9b-0414", 40'960, "40 of all; ", 9'400'279'040, 0},
    {"glm-4.5-air", 188'416, "46 of all; ", 106'852'251'264, 13'424'129'664},
    {"gpt-j-6b", 458'752, "28 of all; ", 6'050'882'784, 0},
    {"gpt-oss-120b", 73'728, "18 of all; 18 of 128; ", 116'829'156'672, 5'711'982'912},
    {"gpt-oss-20b", 49'152, "12 of all; 12 of 128; ", 20'914'757'184, 4'187'440'704},
    {"gpt2", 36'864, "12 of all; ", 124'439'808, 0},
    {"kimi-k2", 70'272, "61 of all; ", 1'026'408'232'448, 32'861'500'928},
    {"llama-2-70b", 327'680, "80 of all; ", 68'976'648'192, 0},
    {"llama-2-7b", 524'288, "32 of all; ", 6'738'415'616, 0},
    {"llama-3-70b", 327'680, "80 of all; ", 70'553'706'496, 0},
    {"llama-3-8b", 131'072, "32 of all; ", 8'030'261'248, 0},
    {"llama-3.2-1b", 32'768, "16 of all; ", 1'235'814'400, 0},
    {"mistral-7b-v0.1", 131'072, "32 of 4096; ", 7'241'732'096, 0},
    {"mistral-7b-v0.3", 131'072, "32 of all; ", 7'248'023'552, 0},
    {"mixtral-8x7b", 131'072, "32 of all; ", 46'702'792'704, 12'879'925'248},
    {"olmo-2-7b", 524'288, "32 of all; ", 7'298'617'344, 0},
    {"olmo-7b", 524'288, "32 of all; ", 6'888'095'744, 0},
    {"phi-2", 327'680, "32 of all; ", 2'779'683'840, 0},
    {"phi-3-mini-4k", 393'216, "32 of all; ", 3'821'079'552, 0},
    {"phi-4", 204'800, "40 of all; ", 14'659'507'200, 0},
    {"qwen1.5-moe-a2.7b", 196'608, "24 of all; ", 14'315'784'192, 2'689'173'504},
    {"qwen2.5-0.5b", 12'288, "24 of all; ", 494'032'768, 0},
    {"qwen2.5-7b", 57'344, "28 of all; ", 7'615'616'512, 0},
    {"qwen3-0.6b", 114'688, "28 of all; ", 596'049'920, 0},
    {"qwen3-30b-a3b", 98'304, "48 of all; ", 30'532'122'624, 3'353'032'704},
    {"qwen3-8b", 147'456, "36 of all; ", 8'190'735'360, 0},
};

TEST(ConfigJson, KnownModelsHaveTheirNumbers) {
  size_t num_files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(TestData("configs")))
    num_files += entry.path().extension() == ".json" ? 1 : 0;
  EXPECT_EQ(std::size(kGoldens), num_files);
  for (const Golden& golden : kGoldens) {
    const KvModel model = Read(Config(golden.name));
    EXPECT_EQ(FormulaBytes(model, 1, 16), golden.bytes_per_token) << golden.name;
    EXPECT_EQ(GroupsText(model), golden.groups) << golden.name;
    EXPECT_EQ(model.num_params, golden.params) << golden.name;
    EXPECT_EQ(model.num_active_params,
              golden.active_params == 0 ? golden.params : golden.active_params)
        << golden.name;
    EXPECT_GT(model.context_length, 0u) << golden.name;
    EXPECT_FALSE(model.weight_bytes.has_value());
  }
}

TEST(ConfigJson, RestOfAModelIsRead) {
  const KvModel model = Read(Config("deepseek-v3"));
  EXPECT_EQ(model.source, "config.json");
  EXPECT_EQ(model.architecture, "deepseek_v3");
  EXPECT_EQ(model.context_length, 163'840u);
  EXPECT_EQ(model.num_layers, 61u);
  EXPECT_EQ(model.num_q_heads, 128u);
  EXPECT_EQ(model.q_head_dim, 192u);  // 128 + 64
  EXPECT_EQ(model.v_head_dim, 128u);
  EXPECT_EQ(model.weights_dtype, "fp8");
  EXPECT_FALSE(model.runs);
  EXPECT_THAT(model.notes, Contains(HasSubstr("predict further tokens: 1")));
  EXPECT_EQ(Read(Config("llama-3-8b")).weights_dtype, "bf16");
  EXPECT_EQ(Read(Config("gpt-oss-20b")).weights_dtype, "mxfp4");
  EXPECT_EQ(Read(Config("gpt2")).weights_dtype, "");
  EXPECT_EQ(Read(Config("gemma-3-27b")).weights_dtype, "bf16");  // of the outer object
}

TEST(ConfigJson, WhatThisEngineRunsIsSaid) {
  for (const char* name :
       {"llama-3.2-1b", "mistral-7b-v0.3", "qwen2.5-0.5b", "qwen3-8b", "gemma-3-4b", "gemma-3-1b"})
    EXPECT_TRUE(Read(Config(name)).runs) << name;
  for (const char* name :
       {"mistral-7b-v0.1", "mixtral-8x7b", "gemma-2-9b", "deepseek-v3", "gpt2", "qwen3-30b-a3b"})
    EXPECT_FALSE(Read(Config(name)).runs) << name;
  EXPECT_THAT(Read(Config("mistral-7b-v0.1")).notes, Contains(HasSubstr("all tokens kept")));
  const Json wrapped = {{"model_type", "mistral3"}, {"text_config", Config("mistral-7b-v0.3")}};
  EXPECT_FALSE(Read(wrapped).runs);  // its GGUF is of another architecture
  Json json = Config("llama-3-8b");
  json["rope_scaling"] = {{"rope_type", "longrope"}};
  EXPECT_FALSE(Read(json).runs);
  EXPECT_THAT(Read(json).notes, Contains(HasSubstr("rope scaling of type longrope")));
  json["rope_scaling"] = {{"type", "linear"}, {"factor", 2}};
  EXPECT_TRUE(Read(json).runs);
}

TEST(ConfigJson, AnAbsentFieldHasItsClassesDefaultAndANullNone) {
  Json json = Config("mistral-7b-v0.1");
  json.erase("sliding_window");
  EXPECT_EQ(GroupsText(Read(json)), "32 of 4096; ");
  EXPECT_THAT(Read(json).notes, Contains(HasSubstr("mistral has it: sliding_window 4096")));
  json["sliding_window"] = nullptr;
  EXPECT_EQ(GroupsText(Read(json)), "32 of all; ");
  EXPECT_TRUE(Read(json).notes.empty());

  json.erase("num_key_value_heads");  // the class's 8
  EXPECT_EQ(Read(json).groups[0].num_kv_heads, 8u);
  EXPECT_THAT(Read(json).notes, Contains(HasSubstr("num_key_value_heads 8")));
  json["num_key_value_heads"] = nullptr;  // as many as query heads
  EXPECT_EQ(Read(json).groups[0].num_kv_heads, 32u);
  json["num_key_value_heads"] = 8;
  json["head_dim"] = nullptr;
  EXPECT_EQ(Read(json).groups[0].head_dim_k, 128u);
  json["head_dim"] = 160;  // as Mistral Nemo's, not hidden / heads
  EXPECT_EQ(Read(json).groups[0].head_dim_k, 160u);

  json = Config("llama-2-7b");
  json.erase("num_key_value_heads");  // older files: before there was GQA
  EXPECT_EQ(Read(json).groups[0].num_kv_heads, 32u);
  EXPECT_TRUE(Read(json).notes.empty());
}

TEST(ConfigJson, ANestedConfigOfDefaultsSaysWhatItTook) {
  const KvModel model = Read(Config("gemma-3-4b"));
  EXPECT_EQ(model.architecture, "gemma3_text");
  EXPECT_THAT(model.notes, Contains(HasSubstr("num_attention_heads 8, num_key_value_heads 4, "
                                              "head_dim 256")));
  EXPECT_THAT(model.notes, Contains(HasSubstr("the language model alone")));
  EXPECT_EQ(model.context_length, 131'072u);
}

TEST(ConfigJson, QwenHasAWindowInUpperLayersOnlyIfItIsUsed) {
  Json json = Config("qwen2.5-7b");
  json["sliding_window"] = 1024;
  json["max_window_layers"] = 21;
  EXPECT_EQ(GroupsText(Read(json)), "28 of all; ");
  json["use_sliding_window"] = true;
  EXPECT_EQ(GroupsText(Read(json)), "21 of all; 7 of 1024; ");
  EXPECT_FALSE(Read(json).runs);
  json["max_window_layers"] = 0;
  EXPECT_EQ(GroupsText(Read(json)), "28 of 1024; ");
  json.erase("max_window_layers");  // 28: none of 28
  EXPECT_EQ(GroupsText(Read(json)), "28 of all; ");
  json["sliding_window"] = nullptr;
  json["max_window_layers"] = 0;
  EXPECT_EQ(GroupsText(Read(json)), "28 of all; ");

  json = Config("qwen3-30b-a3b");
  json["sliding_window"] = 1024;
  json["use_sliding_window"] = true;
  EXPECT_EQ(GroupsText(Read(json)), "48 of 1024; ");
}

TEST(ConfigJson, LayerTypesComeBeforeAPattern) {
  Json json = Config("gemma-3-1b");
  json["sliding_window_pattern"] = 13;
  EXPECT_EQ(GroupsText(Read(json)), "2 of all; 24 of 512; ");
  json["layer_types"] = std::vector<std::string>(26, "sliding_attention");
  json["layer_types"][3] = "full_attention";
  EXPECT_EQ(GroupsText(Read(json)), "1 of all; 25 of 512; ");
  json["layer_types"] = nullptr;
  EXPECT_EQ(GroupsText(Read(json)), "2 of all; 24 of 512; ");
  json.erase("sliding_window_pattern");  // 6
  EXPECT_EQ(GroupsText(Read(json)), "4 of all; 22 of 512; ");

  json = Config("gpt-oss-20b");
  json.erase("layer_types");
  EXPECT_EQ(GroupsText(Read(json)), "12 of all; 12 of 128; ");
  json = Config("llama-3-8b");
  json["layer_types"] = std::vector<std::string>(32, "full_attention");
  EXPECT_EQ(GroupsText(Read(json)), "32 of all; ");
  json = Config("mistral-7b-v0.1");  // a class that knows no such list
  json["layer_types"] = std::vector<std::string>(32, "full_attention");
  EXPECT_EQ(GroupsText(Read(json)), "32 of 4096; ");
}

TEST(ConfigJson, PhisWindowIsNotToBeTrusted) {
  const KvModel model = Read(Config("phi-3-mini-4k"));
  EXPECT_EQ(GroupsText(model), "32 of all; ");
  EXPECT_THAT(model.notes, Contains(HasSubstr("sliding_window is 2047")));
}

TEST(ConfigJson, FalconHasOneKvHeadUnlessItsFieldsSayMore) {
  Json json = Config("falcon-7b");
  EXPECT_EQ(Read(json).groups[0].num_kv_heads, 1u);  // though num_kv_heads is 71
  json["multi_query"] = false;
  EXPECT_EQ(Read(json).groups[0].num_kv_heads, 71u);
  json.erase("multi_query");
  json.erase("num_kv_heads");
  EXPECT_EQ(Read(json).groups[0].num_kv_heads, 1u);
  json = Config("falcon-40b");
  EXPECT_EQ(Read(json).groups[0].num_kv_heads, 8u);
}

TEST(ConfigJson, FamiliesOfOneShapeShareItsRules) {
  Json json = Config("deepseek-v3");
  const KvModel deepseek = Read(json);
  json["model_type"] = "kimi_k2";
  EXPECT_EQ(Read(json).num_params, deepseek.num_params);
  json = Config("llama-3-8b");
  for (const char* type : {"granite", "smollm3"}) {
    json["model_type"] = type;
    EXPECT_EQ(Read(json).num_params, 8'030'261'248u) << type;
  }
  json = Config("olmo-2-7b");
  json["model_type"] = "olmo3";
  EXPECT_EQ(GroupsText(Read(json)), "8 of all; 24 of 4096; ");
  json = Config("glm-4-9b-0414");
  json["model_type"] = "glm";  // two norms of 4,096 fewer in each of 40 layers
  EXPECT_EQ(Read(json).num_params, 9'400'279'040u - 2 * 4096 * 40);
  json = {{"model_type", "mistral3"}, {"text_config", Config("mistral-7b-v0.3")}};
  json["text_config"].erase("model_type");
  EXPECT_EQ(Read(json).num_params, 7'248'023'552u);
  EXPECT_EQ(Read(json).architecture, "mistral");
  json = Config("mistral-7b-v0.1");
  json["model_type"] = "ministral";
  json["layer_types"] = std::vector<std::string>(32, "full_attention");
  json["layer_types"][0] = "sliding_attention";
  EXPECT_EQ(GroupsText(Read(json)), "31 of all; 1 of 4096; ");
}

// Each adds what its class adds, to 32 layers of width 4,096 with 32 heads and 8 KV heads of 128.
TEST(ConfigJson, BiasesAndNormsCount) {
  Json json = Config("llama-3-8b");
  json["attention_bias"] = true;
  EXPECT_EQ(Read(json).num_params, 8'030'261'248u + 32 * (4096 + 2 * 1024 + 4096));
  json["mlp_bias"] = true;
  EXPECT_EQ(Read(json).num_params,
            8'030'261'248u + 32 * (4096 + 2 * 1024 + 4096) + 32 * (2 * 14336 + 4096));
  json = Config("llama-3-8b");
  json["tie_word_embeddings"] = true;
  EXPECT_EQ(Read(json).num_params, 8'030'261'248u - 128256u * 4096);
  json = Config("command-r");
  json["use_qk_norm"] = true;
  EXPECT_EQ(Read(json).num_params, 34'980'831'232u + 40 * (64 + 64) * 128);
  json = Config("phi-2");
  json["qk_layernorm"] = true;
  EXPECT_EQ(Read(json).num_params, 2'779'683'840u + 32 * 4 * 80);
  json = Config("falcon-7b");
  json["parallel_attn"] = false;
  EXPECT_EQ(Read(json).num_params, 6'921'720'704u + 32 * 2 * 4544);
}

TEST(ConfigJson, DenseLayersAmongExpertsCount) {
  Json json = Config("qwen3-30b-a3b");
  // A sparse layer: a router of 2,048 x 128 and 128 experts; a dense one: 3 x 2,048 x 6,144.
  const uint64_t sparse = 2048 * 128 + uint64_t{128} * 3 * 2048 * 768;
  const uint64_t dense = uint64_t{3} * 2048 * 6144;
  json["mlp_only_layers"] = {0, 47};
  EXPECT_EQ(Read(json).num_params, 30'532'122'624u - 2 * sparse + 2 * dense);
  json["mlp_only_layers"] = nullptr;
  json["decoder_sparse_step"] = 2;
  EXPECT_EQ(Read(json).num_params, 30'532'122'624u - 24 * sparse + 24 * dense);
}

TEST(ConfigJson, ParametersThatCannotBeCountedAreNotGuessed) {
  for (const char* field : {"intermediate_size", "num_local_experts"}) {
    Json json = Config("mixtral-8x7b");
    json.erase(field);
    const KvModel model = Read(json);
    EXPECT_FALSE(model.num_params.has_value());
    EXPECT_THAT(model.notes, Contains(HasSubstr(std::string(field) + " is missing")));
    EXPECT_EQ(FormulaBytes(model, 1, 16), 131'072u);
  }
  Json json = Config("mixtral-8x7b");
  json.erase("num_experts_per_tok");
  EXPECT_TRUE(Read(json).num_params.has_value());
  EXPECT_FALSE(Read(json).num_active_params.has_value());
}

TEST(ConfigJson, NamesAreSortedAndAllAreKnown) {
  const auto names = PlannedModelTypes();
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
  for (const char* name :
       {"llama",   "mistral", "mixtral", "qwen2", "qwen2_moe", "qwen3",       "qwen3_moe",
        "gemma",   "gemma2",  "gemma3",  "phi",   "phi3",      "deepseek_v2", "deepseek_v3",
        "kimi_k2", "gpt_oss", "glm",     "glm4",  "glm4_moe",  "cohere",      "cohere2",
        "olmo",    "olmo2",   "falcon",  "gpt2",  "gptj"})
    EXPECT_THAT(names, Contains(name));
}

}  // namespace
}  // namespace quire
