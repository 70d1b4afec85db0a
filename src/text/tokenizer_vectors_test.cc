// Texts and ids of llama.cpp's vocabularies, and ids that our own reference found.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/test_data.h"
#include "text/detokenizer.h"
#include "text/test_gguf.h"
#include "text/tokenizer.h"

namespace quire {
namespace {

struct Vector {
  std::string text;
  std::vector<TokenId> ids;
};

std::vector<Vector> ReadVectors(const std::string& path) {
  const std::string texts = ReadTestFile(path + ".inp");
  std::istringstream lines(ReadTestFile(path + ".out"));
  constexpr std::string_view kSeparator = "\n__ggml_vocab_test__\n";
  std::vector<Vector> vectors;
  for (size_t at = 0; at != std::string::npos;) {
    const size_t end = texts.find(kSeparator, at);
    Vector& vector = vectors.emplace_back();
    vector.text = texts.substr(at, end == texts.npos ? end : end - at);
    at = end == texts.npos ? end : end + kSeparator.size();
    std::string line;
    std::getline(lines, line);
    std::istringstream numbers(line);
    for (TokenId id; numbers >> id;) vector.ids.push_back(id);
  }
  return vectors;
}

StatusOr<Tokenizer> Load(const std::string& path) {
  return Tokenizer::Create(VocabularyOfGguf(path));
}

void ExpectVectors(const std::string& vocabulary, const std::string& vectors_path) {
  const auto tokenizer = Load(vocabulary);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  const std::vector<Vector> vectors = ReadVectors(vectors_path);
  EXPECT_GE(vectors.size(), 40u);
  for (const Vector& vector : vectors) {
    const auto ids = tokenizer->Encode(vector.text, EncodeOptions{});
    ASSERT_TRUE(ids.ok()) << ids.status().message();
    EXPECT_EQ(*ids, vector.ids) << "text: [" << vector.text << "]";
    const auto text = Decode(*tokenizer, *ids);
    ASSERT_TRUE(text.ok());
    EXPECT_EQ(*text, vector.text);
  }
}

// tests/data/tokenizer/README.md says who made them.
TEST(TokenizerVectors, OfThisRepository) {
  for (const char* name : {"tokenizer/smollm-2k.gguf", "tokenizer/stories260K.gguf"}) {
    SCOPED_TRACE(name);
    ExpectVectors(TestData(name), TestData(name));
  }
}

class LlamaCppVectors : public testing::TestWithParam<const char*> {};

TEST_P(LlamaCppVectors, AreMet) {
  const std::string name = std::string("ggml-vocab-") + GetParam() + ".gguf";
  const auto vocabulary = SharedData("tokenizer/" + name);
  if (!vocabulary) GTEST_SKIP() << "no shared data";
  ExpectVectors(*vocabulary, *SharedData("tokenizer/vectors") + "/" + name);
}

INSTANTIATE_TEST_SUITE_P(All, LlamaCppVectors,
                         testing::Values("llama-spm", "phi-3", "gpt-2", "mpt", "starcoder",
                                         "refact", "falcon", "deepseek-coder", "deepseek-llm"));

// Their vocabularies lie with the fetched models; tools/make_tokenizer_peers.py makes the second.
class LlamaCppVectorsByCommand
    : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(LlamaCppVectorsByCommand, AreMet) {
  const auto& [name, model] = GetParam();
  const auto vocabulary = CachedModel(model);
  if (!vocabulary) GTEST_SKIP() << "by command: no " << model;
  const auto vectors = SharedData("tokenizer/vectors");
  if (!vectors) GTEST_SKIP() << "no shared data";
  ExpectVectors(*vocabulary, *vectors + "/ggml-vocab-" + name + ".gguf");
}

INSTANTIATE_TEST_SUITE_P(All, LlamaCppVectorsByCommand,
                         testing::Values(std::pair("qwen2",
                                                   "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"),
                                         std::pair("llama-bpe", "tokenizers/llama-bpe.gguf")));

struct Count {
  const char* vocabulary;
  size_t num_tokens;  // with BOS where the vocabulary adds one; TOK-14
};

class TokenCounts : public testing::TestWithParam<Count> {};

TEST_P(TokenCounts, OfAWholeTextAreThoseOfLlamaCppAndDecodeToIt) {
  const auto path = SharedData(GetParam().vocabulary);
  if (!path) GTEST_SKIP() << "no shared data";
  const auto tokenizer = Load(*path);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  const std::string text = ReadTestFile(*SharedData("text/wiki.test.raw"));
  const auto ids = tokenizer->Encode(text, {.add_special = true});
  ASSERT_TRUE(ids.ok());
  EXPECT_EQ(ids->size(), GetParam().num_tokens);
  EXPECT_EQ(*Decode(*tokenizer, *ids), text);
}

INSTANTIATE_TEST_SUITE_P(All, TokenCounts,
                         testing::Values(Count{"tokenizer/ggml-vocab-gpt-2.gguf", 286221},
                                         Count{"tokenizer/ggml-vocab-llama-spm.gguf", 335688},
                                         Count{"models/stories260K/stories260K-f32.gguf", 809290}));

// The prompts of the greedy goldens were tokenised with BOS and with special tokens parsed.
TEST(TokenizerGoldens, PromptIdsAreThoseOfTheReference) {
  const auto goldens_path = SharedData("goldens/greedy.json");
  if (!goldens_path) GTEST_SKIP() << "no shared data";
  const auto goldens = nlohmann::json::parse(ReadTestFile(*goldens_path));
  size_t num_prompts = 0;
  for (const auto& model : goldens["greedy"]["models"]) {
    const std::string file = model["file"];
    constexpr std::string_view kShared = "shared/data/";
    const auto path = file.starts_with(kShared) ? SharedData(file.substr(kShared.size()))
                                                : CachedModel(file.substr(0, file.find(' ')));
    if (!path) continue;
    const auto tokenizer = Load(*path);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
    for (const auto& prompt : model["prompts"]) {
      const std::string text = prompt["prompt"];
      const auto ids = tokenizer->Encode(text, {.add_special = true, .parse_special = true});
      ASSERT_TRUE(ids.ok());
      EXPECT_EQ(*ids, prompt["prompt_ids"].get<std::vector<TokenId>>()) << file << ": " << text;
      ++num_prompts;
    }
  }
  EXPECT_GT(num_prompts, 0u);
}

TEST(TokenizerGoldens, SmolLm2) {
  const auto model = CachedModel("SmolLM2-135M-Instruct.Q4_1.gguf");
  const auto goldens_path = SharedData("goldens/greedy.json");
  if (!model || !goldens_path) GTEST_SKIP() << "no cached model or no shared data";
  const auto tokenizer = Load(*model);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  const auto goldens = nlohmann::json::parse(ReadTestFile(*goldens_path));
  const auto first = goldens["perplexity"]["first_24_ids"]["SmolLM2-135M-Instruct.Q4_1"]
                         .get<std::vector<TokenId>>();
  const std::string text = ReadTestFile(*SharedData("text/wiki.test.raw"));
  const auto ids = tokenizer->Encode(text, {.add_special = true});
  ASSERT_TRUE(ids.ok());
  EXPECT_EQ(std::vector<TokenId>(ids->begin(), ids->begin() + 24), first);
  EXPECT_EQ(*Decode(*tokenizer, *ids), text);
  EXPECT_THAT(tokenizer->end_of_generation(), testing::ElementsAre(0, 2));
}

}  // namespace
}  // namespace quire
