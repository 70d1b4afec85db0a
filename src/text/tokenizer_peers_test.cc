// Ids that tiktoken, Hugging Face's tokenizers and libsentencepiece find with vocabularies that are
// not in the repository: they lie with the fetched models. tools/make_tokenizer_peers.py makes
// them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/fnv.h"
#include "base/test_data.h"
#include "text/detokenizer.h"
#include "text/test_gguf.h"
#include "text/tokenizer.h"

namespace quire {
namespace {

using nlohmann::json;

constexpr const char* kQwen2 = "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf";
constexpr const char* kGemma3 = "gemma-3-270m-q4_k_m.gguf";

Tokenizer MustLoad(const std::string& path) {
  auto tokenizer = Tokenizer::Create(VocabularyOfGguf(path));
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  return std::move(tokenizer).value();
}

std::string Digest(const std::vector<TokenId>& ids) {
  uint64_t value = kFnvStart;
  for (const TokenId id : ids) {
    for (int shift = 0; shift < 32; shift += 8)
      value = FnvStep(value, static_cast<uint64_t>(id >> shift & 0xFF));
  }
  std::ostringstream hex;
  hex << std::hex << std::setw(16) << std::setfill('0') << value;
  return hex.str();
}

struct Peer {
  const char* name;
  const char* vocabulary;
  bool is_committed = false;  // its ids, in tests/data
};

class TokenizerPeers : public testing::TestWithParam<Peer> {};

TEST_P(TokenizerPeers, FindTheSameIds) {
  const Peer& peer = GetParam();
  const auto vocabulary = CachedModel(peer.vocabulary);
  if (!vocabulary) GTEST_SKIP() << "by command: no " << peer.vocabulary;
  const std::string name = std::string(peer.name) + ".json";
  const std::optional<std::string> path =
      peer.is_committed ? TestData("tokenizer/" + name) : CachedModel("tokenizers/" + name);
  if (!path) GTEST_SKIP() << "by command: no " << name;
  const Tokenizer tokenizer = MustLoad(*vocabulary);
  const json goldens = json::parse(ReadTestFile(*path));
  const json texts = json::parse(ReadTestFile(TestData("tokenizer/splits.json")))["texts"];
  ASSERT_EQ(texts.size(), goldens["ids"].size());
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::string text = texts[i];
    const auto ids = tokenizer.Encode(text, EncodeOptions{});
    ASSERT_TRUE(ids.ok()) << ids.status().message();
    EXPECT_EQ(*ids, goldens["ids"][i].get<std::vector<TokenId>>()) << i << ": " << text;
    EXPECT_EQ(*Decode(tokenizer, *ids), text);
  }
  for (const char* file : {"text/wiki.test.raw", "text/war-and-peace.txt"}) {
    const auto text_path = SharedData(file);
    if (!text_path) continue;
    const auto ids = tokenizer.Encode(ReadTestFile(*text_path), EncodeOptions{});
    ASSERT_TRUE(ids.ok());
    EXPECT_EQ(ids->size(), goldens[file]["num_tokens"].get<size_t>()) << file;
    EXPECT_EQ(Digest(*ids), goldens[file]["digest"].get<std::string>()) << file;
  }
}

INSTANTIATE_TEST_SUITE_P(All, TokenizerPeers,
                         testing::Values(Peer{"qwen2", kQwen2, true}, Peer{"gemma3", kGemma3, true},
                                         Peer{"llama-bpe", "tokenizers/llama-bpe.gguf"},
                                         Peer{"llama4", "tokenizers/llama4.gguf"},
                                         Peer{"tekken", "tokenizers/tekken.gguf"},
                                         Peer{"deepseek-v3", "tokenizers/deepseek-v3.gguf"}),
                         [](const auto& instance) {
                           std::string name = instance.param.name;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

// The counts are the model's own; the ids of the reference that made the goldens.
TEST(Gemma3, LoadsWithAllItsTokens) {
  const auto path = CachedModel(kGemma3);
  if (!path) GTEST_SKIP() << "by command: no " << kGemma3;
  const Vocabulary vocabulary = VocabularyOfGguf(*path);
  EXPECT_EQ(vocabulary.tokens.size(), 262144u);
  EXPECT_EQ(std::ranges::count(vocabulary.types, TokenType::kUserDefined), 165);
  EXPECT_EQ(std::ranges::count(vocabulary.types, TokenType::kByte), 256);
  const Tokenizer tokenizer = MustLoad(*path);
  EXPECT_EQ(tokenizer.bos(), 2);
  EXPECT_FALSE(tokenizer.adds_space_prefix());
  EXPECT_THAT(tokenizer.end_of_generation(), testing::ElementsAre(1, 106));
  const auto goldens = SharedData("goldens/greedy.json");
  if (!goldens) return;
  const auto first =
      json::parse(ReadTestFile(*goldens))["perplexity"]["first_24_ids"]["gemma3-270m-q4_k_m"]
          .get<std::vector<TokenId>>();
  const auto ids =
      tokenizer.Encode(ReadTestFile(*SharedData("text/wiki.test.raw")), {.add_special = true});
  ASSERT_TRUE(ids.ok());
  EXPECT_EQ(std::vector<TokenId>(ids->begin(), ids->begin() + 24), first);
}

// TOK-07. No space comes after a special token.
TEST(Gemma3, PutsNoSpaceAfterASpecialToken) {
  const auto path = CachedModel(kGemma3);
  if (!path) GTEST_SKIP() << "by command: no " << kGemma3;
  EXPECT_EQ(*MustLoad(*path).Encode("<pad>text<eos>", {.parse_special = true}),
            (std::vector<TokenId>{0, 1005, 1}));
}

TEST(Qwen2, LoadsWithItsPadding) {
  const auto path = CachedModel(kQwen2);
  if (!path) GTEST_SKIP() << "by command: no " << kQwen2;
  const Vocabulary vocabulary = VocabularyOfGguf(*path);
  EXPECT_EQ(std::ranges::count(vocabulary.types, TokenType::kNormal), 151643);
  EXPECT_EQ(std::ranges::count(vocabulary.types, TokenType::kUnused), 271);
  const Tokenizer tokenizer = MustLoad(*path);
  EXPECT_EQ(tokenizer.Encode("a", {.add_special = true})->size(), 1u);
}

// The whole-token rule and BOS by default, on the vocabulary that they are for.
TEST(Llama3, BeginsWithBosUnlessTheFileSaysNo) {
  const auto path = CachedModel("tokenizers/llama-bpe.gguf");
  if (!path) GTEST_SKIP() << "by command: no tokenizers/llama-bpe.gguf";
  Vocabulary vocabulary = VocabularyOfGguf(*path);
  vocabulary.bos = 0;
  EXPECT_EQ(Tokenizer::Create(vocabulary)->Encode("a", {.add_special = true})->front(), 0);
  vocabulary.add_bos = false;
  EXPECT_EQ(Tokenizer::Create(vocabulary)->Encode("a", {.add_special = true})->size(), 1u);
}

}  // namespace
}  // namespace quire
