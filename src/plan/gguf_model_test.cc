#include "plan/gguf_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/test_data.h"
#include "model/architecture.h"
#include "model/gguf_file.h"
#include "model/gguf_writer.h"
#include "model/layer_groups.h"
#include "plan/formula_bytes.h"

namespace quire {
namespace {

using testing::Contains;
using testing::HasSubstr;

StatusOr<KvModel> Read(const GgufWriter& writer) {
  const Bytes bytes = writer.File();
  const auto header = ParseGguf(bytes, bytes.size());
  EXPECT_TRUE(header.ok() && header->has_value());
  return ReadGgufModel(**header);
}

// The tiny llama under another name.
GgufWriter TinyAs(const std::string& name) {
  GgufWriter writer = TinyLlama();
  writer.SetString("general.architecture", name);
  writer.Set<uint32_t>(name + ".context_length", 4096)
      .Set<uint32_t>(name + ".embedding_length", 16)
      .Set<uint32_t>(name + ".block_count", 2)
      .Set<uint32_t>(name + ".attention.head_count", 4)
      .Set<uint32_t>(name + ".attention.head_count_kv", 2);
  return writer;
}

// The groups as text: "2 x 16, 1 of all".
std::string GroupsText(const KvModel& model) {
  std::string text;
  for (const KvLayers& layers : model.groups)
    text += std::to_string(layers.num_layers) + " of " +
            (layers.window == 0 ? "all" : std::to_string(layers.window)) + "; ";
  return text;
}

TEST(GgufModel, EveryFileOfTheManifestHasItsShape) {
  const auto folder = SharedData("models/rplus");
  if (!folder) GTEST_SKIP() << "no shared data folder";
  const auto manifest = nlohmann::json::parse(std::ifstream(*folder + "/manifest.json"));
  for (const auto& entry : manifest["models"]) {
    const std::string name = entry["name"];
    const auto file = GgufFile::Open(*folder + "/" + entry["file"].get<std::string>());
    ASSERT_TRUE(file.ok()) << file.status().message();
    const auto model = ReadGgufModel(file->header());
    ASSERT_TRUE(model.ok()) << name << ": " << model.status().message();
    EXPECT_EQ(model->architecture, entry["arch"]) << name;
    EXPECT_EQ(model->num_layers, entry["n_layer"]) << name;
    EXPECT_EQ(model->num_q_heads, entry["n_head"]) << name;
    EXPECT_EQ(model->q_head_dim, entry["head_dim_k"]) << name;
    EXPECT_EQ(model->v_head_dim, entry["head_dim_v"]) << name;
    EXPECT_EQ(model->groups.back().window, entry.value("window", 0)) << name;
    const KvLayers& layer = model->groups.front();
    EXPECT_EQ(layer.is_latent(), entry.contains("kv_lora_rank")) << name;
    if (layer.is_latent()) {
      EXPECT_EQ(layer.head_dim_k, entry["kv_lora_rank"]) << name;
      EXPECT_EQ(layer.latent_rope_dim, entry["n_rot"]) << name;
      EXPECT_EQ(layer.num_kv_heads, 1u) << name;
    } else {
      EXPECT_EQ(layer.num_kv_heads, entry["n_head_kv"]) << name;
      EXPECT_EQ(layer.head_dim_k, entry["head_dim_k"]) << name;
      EXPECT_EQ(layer.head_dim_v, entry["head_dim_v"]) << name;
    }
  }
}

TEST(GgufModel, WindowedLayersAreThoseOfTheirArchitecture) {
  const auto folder = SharedData("models/rplus");
  if (!folder) GTEST_SKIP() << "no shared data folder";
  // Period 4, 2, 6 and 3 by key, 2, 4: all but the last of each are windowed.
  const std::pair<const char*, const char*> cases[] = {
      {"cohere2", "1 of all; 3 of 16; "}, {"gemma2", "2 of all; 2 of 16; "},
      {"gemma3", "1 of all; 5 of 16; "},  {"gemma3-p3", "1 of all; 2 of 16; "},
      {"gpt-oss", "2 of all; 2 of 16; "}, {"olmo3", "1 of all; 3 of 16; "},
      {"llama-gqa", "4 of all; "},        {"deepseek2-lite", "3 of all; "},
  };
  for (const auto& [name, groups] : cases) {
    const auto file = GgufFile::Open(*folder + "/" + name + ".gguf");
    ASSERT_TRUE(file.ok()) << file.status().message();
    const auto model = ReadGgufModel(file->header());
    ASSERT_TRUE(model.ok()) << model.status().message();
    EXPECT_EQ(GroupsText(*model), groups) << name;
  }
}

// Of every file that the engine runs, of each set.
TEST(GgufModel, AModelThatRunsHasTheEnginesNumbers) {
  int num_running = 0;
  for (const char* set :
       {"models/rplus", "models/random", "models/stories260K", "models/TinyStories-656K"}) {
    const auto folder = SharedData(set);
    if (!folder) GTEST_SKIP() << "no shared data folder";
    for (const auto& entry : std::filesystem::directory_iterator(*folder)) {
      if (entry.path().extension() != ".gguf") continue;
      const auto file = GgufFile::Open(entry.path());
      ASSERT_TRUE(file.ok()) << file.status().message();
      const auto model = ReadGgufModel(file->header());
      ASSERT_TRUE(model.ok()) << entry.path() << model.status().message();
      const auto shape = ReadShape(file->header());
      EXPECT_EQ(model->runs, shape.ok() && CheckTensors(file->header(), *shape).ok())
          << entry.path();
      uint64_t bytes = 0;
      for (const GgufTensor& tensor : file->header().tensors()) bytes += tensor.size_bytes;
      EXPECT_EQ(model->weight_bytes, bytes);
      if (!model->runs) {
        EXPECT_THAT(model->notes, Contains(HasSubstr("this version does not run it")));
        continue;
      }
      ++num_running;
      EXPECT_EQ(FormulaBytes(*model, 1, 16), static_cast<uint64_t>(shape->KvBytesPerToken(2)));
      EXPECT_EQ(model->context_length, static_cast<uint32_t>(shape->context_length));
      const LayerGroups groups(*shape);
      ASSERT_EQ(model->groups.size(), groups.size());
      for (size_t g = 0; g < groups.size(); ++g) {
        EXPECT_EQ(model->groups[g].window, groups[g].window);
        EXPECT_EQ(model->groups[g].num_layers, groups[g].layers.size());
      }
    }
  }
  EXPECT_GE(num_running, 17);
}

TEST(GgufModel, LatentAttentionIsOneLatentAToken) {  // PLN-01
  const auto path = SharedData("models/random/deepseek2-moe.gguf");
  if (!path) GTEST_SKIP() << "no shared data folder";
  const auto file = GgufFile::Open(*path);
  ASSERT_TRUE(file.ok());
  const auto model = ReadGgufModel(file->header());
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(FormulaBytes(*model, 1, 16), 2304u);  // 2 layers x (512 + 64) x 2
}

TEST(GgufModel, EveryExpertIsLoaded) {  // PLN-12
  const auto path = SharedData("models/random/deepseek2-moe.gguf");
  if (!path) GTEST_SKIP() << "no shared data folder";
  const auto file = GgufFile::Open(*path);
  ASSERT_TRUE(file.ok());
  const auto model = ReadGgufModel(file->header());
  ASSERT_TRUE(model.ok()) << model.status().message();
  // All are F32. A token passes one of two experts in one layer: 3 matrices of 128 x 192, and the
  // factor that belongs to each stays out of it or not.
  EXPECT_EQ(model->weight_bytes, *model->num_params * 4);
  EXPECT_EQ(*model->num_params - *model->num_active_params, 3u * 128 * 192 + 2);
  EXPECT_EQ(model->weights_dtype, "F32");
}

// 2 of 8 experts in each of 2 layers: of their 3 matrices of 64 x 32 six lie idle.
TEST(GgufModel, ATokenPassesSomeExperts) {
  const auto path = SharedData("models/rplus/qwen3moe.gguf");
  if (!path) GTEST_SKIP() << "no shared data folder";
  const auto file = GgufFile::Open(*path);
  ASSERT_TRUE(file.ok());
  const auto model = ReadGgufModel(file->header());
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(*model->num_params - *model->num_active_params, 2u * 6 * 3 * 64 * 32);
}

TEST(GgufModel, UnknownArchitecturesAreRefusedByName) {  // PLN-08
  GgufWriter writer = TinyAs("newarch");
  const auto model = Read(writer);
  EXPECT_EQ(model.status().code(), StatusCode::kUnsupported);
  EXPECT_THAT(model.status().message(), HasSubstr("architecture newarch is not known"));
  EXPECT_THAT(model.status().message(), HasSubstr("deepseek2, exaone4"));
}

TEST(GgufModel, AStateBesideTheKvIsRefusedByItsKey) {  // PLN-08
  for (const char* key :
       {"ssm.state_size", "wkv.head_size", "shortconv.l_cache", "attention.indexer.key_length",
        "attention.shared_kv_layers", "full_attention_interval", "attention.recurrent_layers"})
    for (const std::string architecture : {"llama", "gpt2"}) {
      GgufWriter writer = architecture == "llama" ? TinyLlama() : TinyAs(architecture);
      writer.Set<uint32_t>(architecture + "." + key, 0);  // as converters write "none"
      EXPECT_TRUE(Read(writer).ok()) << key;
      writer.Set<uint32_t>(architecture + "." + key, 16);
      const auto model = Read(writer);
      EXPECT_EQ(model.status().code(), StatusCode::kUnsupported) << key;
      EXPECT_THAT(model.status().message(), HasSubstr(architecture + "." + key + " is 16"));
    }
}

TEST(GgufModel, Mistral7BIsToldThatItsWindowIsNotInTheFile) {
  GgufWriter writer = TinyLlama();
  EXPECT_TRUE(Read(writer)->notes.empty());
  writer.SetString("general.name", "mistralai_mistral-7b-v0.1");
  const auto model = Read(writer);
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(GroupsText(*model), "2 of all; ");
  EXPECT_THAT(model->notes, Contains(HasSubstr("Mistral 7B v0.1 has one of 4096")));
  writer.Set<uint32_t>("llama.attention.sliding_window", 8);
  EXPECT_EQ(GroupsText(*Read(writer)), "2 of 8; ");
  EXPECT_TRUE(Read(writer)->notes.empty());
}

TEST(GgufModel, AWindowThatIsNotToBeTrustedIsTold) {
  GgufWriter writer = TinyAs("phi3");
  writer.Set<uint32_t>("phi3.attention.sliding_window", 2047);
  const auto model = Read(writer);
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(GroupsText(*model), "2 of all; ");
  EXPECT_THAT(model->notes, Contains(HasSubstr("sliding_window is 2047")));
}

TEST(GgufModel, DefaultWindowsAreThoseOfTheArchitecture) {
  EXPECT_EQ(GroupsText(*Read(TinyAs("gemma2"))), "1 of all; 1 of 4096; ");
  EXPECT_EQ(GroupsText(*Read(TinyAs("exaone4"))), "2 of all; ");
  EXPECT_EQ(GroupsText(*Read(TinyAs("exaone4").Set<uint32_t>("exaone4.block_count", 64))),
            "16 of all; 48 of 4096; ");
  EXPECT_EQ(GroupsText(*Read(TinyAs("olmo2"))), "2 of all; ");
  for (const std::string name : {"gpt-oss", "cohere2"}) {
    const auto model = Read(TinyAs(name));
    EXPECT_EQ(model.status().code(), StatusCode::kInvalidFile);
    EXPECT_THAT(model.status().message(), HasSubstr(name + ".attention.sliding_window"));
  }
}

TEST(GgufModel, LayersForFurtherTokensAreNotCounted) {
  const auto model = Read(TinyAs("qwen2moe")
                              .Set<uint32_t>("qwen2moe.block_count", 3)
                              .Set<uint32_t>("qwen2moe.nextn_predict_layers", 1));
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(model->num_layers, 2u);
  EXPECT_THAT(model->notes, Contains(HasSubstr("predict further tokens: 1")));
}

TEST(GgufModel, WhatTheEngineDoesNotRunYetIsPlannedAllTheSame) {
  // A mixture of experts of a known architecture.
  GgufWriter writer = TinyLlama();
  writer.Set<uint32_t>("llama.expert_count", 8).Set<uint32_t>("llama.expert_used_count", 2);
  const auto model = Read(writer);
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_FALSE(model->runs);
  EXPECT_EQ(GroupsText(*model), "2 of all; ");
  EXPECT_EQ(model->groups[0].head_dim_k, 4u);
}

TEST(GgufModel, DamagedHeadersAreErrorsThatNameTheKey) {
  const auto error = [](const GgufWriter& writer) {
    const auto model = Read(writer);
    EXPECT_EQ(model.status().code(), StatusCode::kInvalidFile);
    return model.ok() ? "" : model.status().message();
  };
  EXPECT_THAT(error(TinyAs("gpt2").Remove("gpt2.block_count")), HasSubstr("gpt2.block_count"));
  EXPECT_THAT(error(TinyAs("gpt2").Set<uint32_t>("gpt2.block_count", 0)),
              HasSubstr("gpt2.block_count"));
  EXPECT_THAT(error(TinyAs("gpt2").Set<uint32_t>("gpt2.block_count", 5000)),
              HasSubstr("gpt2.block_count"));
  EXPECT_THAT(error(TinyAs("gpt2").Set<float>("gpt2.attention.head_count", 4)),
              HasSubstr("gpt2.attention.head_count"));
  EXPECT_THAT(error(TinyAs("gpt2").Set<uint32_t>("gpt2.attention.head_count_kv", 3)),
              HasSubstr("must be a multiple"));
  EXPECT_THAT(error(TinyAs("gpt2").Set<uint32_t>("gpt2.embedding_length", 17)),
              HasSubstr("gpt2.attention.key_length"));
  EXPECT_THAT(error(TinyAs("deepseek2")), HasSubstr("deepseek2.attention.kv_lora_rank"));
  EXPECT_THAT(error(TinyAs("qwen3moe")
                        .Set<uint32_t>("qwen3moe.expert_count", 2)
                        .Set<uint32_t>("qwen3moe.expert_used_count", 3)),
              HasSubstr("qwen3moe.expert_used_count"));
  EXPECT_THAT(error(TinyLlama().RemoveTensor("blk.1.attn_q.weight")),
              HasSubstr("blk.1.attn_q.weight"));
}

TEST(GgufModel, LayersThatDifferAreRefused) {
  const auto heads = Read(TinyAs("gpt2").SetArray<uint32_t>("gpt2.attention.head_count_kv",
                                                            std::vector<uint32_t>{2, 1}));
  EXPECT_EQ(heads.status().code(), StatusCode::kUnsupported);
  const auto windowed = Read(TinyAs("gemma2").Set<uint32_t>("gemma2.attention.key_length_swa", 8));
  EXPECT_EQ(windowed.status().code(), StatusCode::kUnsupported);
  EXPECT_THAT(windowed.status().message(), HasSubstr("gemma2.attention.key_length_swa is 8"));
  const auto part = Read(TinyLlama().SetString("general.type", "adapter"));
  EXPECT_EQ(part.status().code(), StatusCode::kUnsupported);
}

TEST(GgufModel, NamesAreSorted) {
  const auto names = PlannedGgufArchitectures();
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  for (const Architecture* architecture : AllArchitectures())
    EXPECT_THAT(names, Contains(architecture->name));
}

}  // namespace
}  // namespace quire
