// The files of the shared data folder: every one opens without a crash, and the shapes of those
// that run are those of the manifest that came with them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/test_cost.h"
#include "base/test_data.h"
#include "model/architecture.h"
#include "model/gguf_file.h"
#include "model/gguf_writer.h"
#include "model/vocabulary_reader.h"

namespace quire {
namespace {

std::vector<std::string> GgufFilesUnder(const std::string& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.path().extension() == ".gguf") paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

TEST(ModelFiles, EachIsAModelWeRunOrIsRefusedWithAReason) {
  const auto folder = SharedData("models");
  if (!folder) GTEST_SKIP() << "no shared data folder";
  int num_runnable = 0;
  for (const std::string& path : GgufFilesUnder(*folder)) {
    const auto file = GgufFile::Open(path);
    ASSERT_TRUE(file.ok()) << file.status().message();
    const auto vocabulary = ReadVocabulary(file->header(), file->header_memory());
    EXPECT_TRUE(vocabulary.ok()) << path << vocabulary.status().message();
    const auto shape = ReadShape(file->header());
    const auto unknown = shape.ok() ? CheckTensors(file->header(), *shape)
                                    : StatusOr<std::vector<std::string_view>>(shape.status());
    if (unknown.ok()) {
      // What architecture rules do not name: a classifier's head of qwen3.
      for (const std::string_view name : *unknown) EXPECT_EQ(name, "cls.output.weight") << path;
      ++num_runnable;
    } else {
      EXPECT_EQ(unknown.status().code(), StatusCode::kUnsupported)
          << path << ": " << unknown.status().message();
    }
  }
  // 10 of rplus, stories260K in F32, 3 of TinyStories, 3 of the random set; more with more types.
  EXPECT_GE(num_runnable, 17);
}

TEST(ModelFiles, VocabularyFilesAreReadWithoutAModel) {
  const auto folder = SharedData("tokenizer");
  if (!folder) GTEST_SKIP() << "no shared data folder";
  for (const std::string& path : GgufFilesUnder(*folder)) {
    const auto file = GgufFile::Open(path);
    ASSERT_TRUE(file.ok()) << file.status().message();
    const auto vocabulary = ReadVocabulary(file->header(), file->header_memory());
    ASSERT_TRUE(vocabulary.ok()) << path << vocabulary.status().message();
    EXPECT_GT(vocabulary->tokens.size(), 1000u) << path;
    EXPECT_FALSE(ReadShape(file->header()).ok());
  }
}

TEST(ModelFiles, ShapesAreThoseOfTheManifest) {
  const auto folder = SharedData("models/rplus");
  if (!folder) GTEST_SKIP() << "no shared data folder";
  const auto manifest = nlohmann::json::parse(std::ifstream(*folder + "/manifest.json"));
  int num_compared = 0;
  for (const auto& model : manifest["models"]) {
    if (model["name"] == "llama-moe") continue;
    if (!FindArchitecture(model["arch"].get<std::string>()).ok()) continue;
    const auto file = GgufFile::Open(*folder + "/" + model["file"].get<std::string>());
    ASSERT_TRUE(file.ok()) << file.status().message();
    EXPECT_EQ(file->size_bytes(), model["bytes"]);
    const auto shape = ReadShape(file->header());
    ASSERT_TRUE(shape.ok()) << shape.status().message();
    EXPECT_EQ(shape->vocab_size, model["n_vocab"]) << model["name"];
    EXPECT_EQ(shape->embedding_length, model["n_embd"]) << model["name"];
    EXPECT_EQ(shape->num_layers, model["n_layer"]) << model["name"];
    EXPECT_EQ(shape->num_q_heads, model["n_head"]) << model["name"];
    EXPECT_EQ(shape->num_kv_heads, model["n_head_kv"]) << model["name"];
    EXPECT_EQ(shape->head_dim_k, model["head_dim_k"]) << model["name"];
    EXPECT_EQ(shape->head_dim_v, model["head_dim_v"]) << model["name"];
    EXPECT_EQ(shape->feed_forward_length, model["n_ff"]) << model["name"];
    EXPECT_EQ(shape->rope().dimension_count, model["n_rot"]) << model["name"];
    EXPECT_EQ(shape->sliding_window, model.value("window", 0)) << model["name"];
    ++num_compared;
  }
  EXPECT_GE(num_compared, 15);
}

TEST(ModelFiles, MixturesOfExpertsAreRefused) {
  const auto path = SharedData("models/rplus/llama-moe.gguf");
  if (!path) GTEST_SKIP() << "no shared data folder";
  const auto file = GgufFile::Open(*path);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(ReadShape(file->header()).status().code(), StatusCode::kUnsupported);
}

TEST(ModelFiles, OddKeysOfTheRandomSetMeanNotSet) {  // GGUF-10, GGUF-11
  const auto path = SharedData("models/random/llama-dense.gguf");
  if (!path) GTEST_SKIP() << "no shared data folder";
  const auto file = GgufFile::Open(*path);
  ASSERT_TRUE(file.ok()) << file.status().message();
  const auto shape = ReadShape(file->header());
  ASSERT_TRUE(shape.ok()) << shape.status().message();
  EXPECT_EQ(shape->sliding_window, 0);
  EXPECT_EQ(shape->rope().factor, 1);
  EXPECT_EQ(shape->rope().scaling, RopeScaling::kNone);
  EXPECT_EQ(shape->num_tokens, 128);
  const auto vocabulary = ReadVocabulary(file->header(), file->header_memory());
  ASSERT_TRUE(vocabulary.ok());
  EXPECT_EQ(vocabulary->kind, VocabularyKind::kNone);
  EXPECT_FALSE(vocabulary->eos.has_value());
}

TEST(ModelFiles, ALargeVocabularyOpensInMilliseconds) {  // GGUF-02
  constexpr int kNumTokens = 151'936;
  std::vector<std::string> tokens, merges;
  for (int i = 0; i < kNumTokens; ++i) {
    tokens.push_back("token" + std::to_string(i));
    merges.push_back("to ken" + std::to_string(i));
  }
  GgufWriter writer = TinyLlama();
  writer.SetString("tokenizer.ggml.model", "gpt2")
      .SetStrings("tokenizer.ggml.tokens", tokens)
      .SetArray<float>("tokenizer.ggml.scores", std::vector<float>(kNumTokens))
      .SetStrings("tokenizer.ggml.merges", merges)
      .SetArray<int32_t>("tokenizer.ggml.token_type", std::vector<int32_t>(kNumTokens, 1));
  const Bytes file = writer.File();
  const auto open = [&] {
    const auto header = ParseGguf(file, file.size());
    return ReadVocabulary(**header, nullptr);
  };
  const auto vocabulary = open();
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status().message();
  EXPECT_EQ(vocabulary->tokens.back(), tokens.back());
  EXPECT_EQ(vocabulary->merges.back(), merges.back());
  EXPECT_LT(LeastSeconds(5, [&] { EXPECT_TRUE(open().ok()); }), 0.3);
}

}  // namespace
}  // namespace quire
