// Encoding is linear in the text, whatever the text. TOK-01, TOK-02.
#include <gtest/gtest.h>

#include <random>

#include "base/test_cost.h"
#include "base/test_data.h"
#include "text/detokenizer.h"
#include "text/test_gguf.h"
#include "text/test_vocabulary.h"
#include "text/tokenizer.h"

namespace quire {
namespace {

Work Encoding(const Tokenizer& tokenizer, std::string_view text) {
  return [&tokenizer, text] {
    const auto ids = tokenizer.Encode(text, EncodeOptions{});
    EXPECT_TRUE(ids.ok()) << ids.status().message();
  };
}

std::string Repeat(std::string_view unit, size_t num_bytes) {
  std::string text;
  while (text.size() < num_bytes) text += unit;
  return text;
}

#ifdef NDEBUG
constexpr size_t kBytes = 1 << 20;
#else
constexpr size_t kBytes = 1 << 18;  // sanitizers
#endif

void ExpectLinear(const Tokenizer& tokenizer) {
  std::string random_bytes;
  std::mt19937 random(5);
  while (random_bytes.size() < kBytes) random_bytes += static_cast<char>(random());
  struct Text {
    const char* name;
    std::string whole;
  };
  for (const Text& text :
       {Text{"letter", Repeat("a", kBytes)}, Text{"capital", Repeat("A", kBytes)},
        Text{"space", Repeat(" ", kBytes)}, Text{"underscore", Repeat("_", kBytes)},
        Text{"dot", Repeat(".", kBytes)}, Text{"caret", Repeat("^", kBytes)},
        Text{"digit", Repeat("7", kBytes)}, Text{"newline", Repeat("\n", kBytes)},
        Text{"Chinese", Repeat("\u4E2D", kBytes)}, Text{"emoji", Repeat("\U0001F600", kBytes)},
        Text{"start of a special token", Repeat("<", kBytes)}, Text{"random", random_bytes}}) {
    const Work quarter = Encoding(tokenizer, std::string_view(text.whole).substr(0, kBytes / 4));
    const Work whole = Encoding(tokenizer, text.whole);
    // 2.5 for each doubling; below some milliseconds a cache that the larger text outgrows is more
    // than that. A quadratic step takes 16 times as long, and minutes.
    EXPECT_TRUE(
        CostsAtMost({.factor = 2.5 * 2.5, .slack_seconds = 0.1, .num_rounds = 1}, quarter, whole))
        << text.name;
#ifdef NDEBUG
    // Two to ten times what it takes.
    EXPECT_TRUE(CostsAtMost(
        {.factor = 0, .slack_seconds = 1, .num_rounds = 1}, [] {}, whole))
        << text.name;
#endif
  }
}

TEST(TokenizerSpeed, IsLinearForSmallVocabularies) {
  for (const auto& vocabulary :
       {SmallBpeVocabulary(), SmallSpmVocabulary(), SmallSpmVocabulary(/*with_bytes=*/false)}) {
    const auto tokenizer = Tokenizer::Create(vocabulary);
    ASSERT_TRUE(tokenizer.ok());
    ExpectLinear(*tokenizer);
  }
}

std::vector<std::pair<std::string, Tokenizer>> RealVocabularies(
    std::initializer_list<const char*> shared, std::initializer_list<const char*> cached) {
  std::vector<std::pair<std::string, Tokenizer>> tokenizers;
  const auto add = [&](const char* name, const std::optional<std::string>& path) {
    if (!path) return;
    auto tokenizer = Tokenizer::Create(VocabularyOfGguf(*path));
    EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().message();
    tokenizers.emplace_back(name, std::move(tokenizer).value());
  };
  for (const char* name : shared) {
    add(name, SharedData(std::string("tokenizer/ggml-vocab-") + name + ".gguf"));
  }
  for (const char* name : cached) add(name, CachedModel(name));
  return tokenizers;
}

TEST(TokenizerSpeed, IsLinearForRealVocabularies) {
  const auto tokenizers = RealVocabularies({"gpt-2", "llama-spm", "deepseek-llm", "starcoder"}, {});
  if (tokenizers.empty()) GTEST_SKIP() << "no shared data";
  for (const auto& [name, tokenizer] : tokenizers) {
    SCOPED_TRACE(name);
    ExpectLinear(tokenizer);
  }
}

// TOK-02: 2 to the k underscores, each twice as many as before.
TEST(TokenizerSpeed, OneLongWordCostsWhatItsBytesCost) {
  const auto path = SharedData("tokenizer/ggml-vocab-gpt-2.gguf");
  if (!path) GTEST_SKIP() << "no shared data";
  const auto tokenizer = Tokenizer::Create(VocabularyOfGguf(*path));
  ASSERT_TRUE(tokenizer.ok());
  const std::string whole(size_t{1} << 20, '_');
  const auto start = [&](int k) {
    return Encoding(*tokenizer, std::string_view(whole).substr(0, size_t{1} << k));
  };
  for (int k = 12; k < 20; ++k) {
    // Below some milliseconds, a cache that is outgrown is more than the step.
    EXPECT_TRUE(CostsAtMost({.factor = 2.5, .slack_seconds = 0.02}, start(k), start(k + 1)))
        << "k " << k;
  }
#ifdef NDEBUG
  EXPECT_LT(LeastSeconds(3, start(20)), 1.0);  // four times what it takes
#endif
}

#ifdef NDEBUG
// 10 MB of one kind of character: no recursion, no limit of PCRE2, four times the time for four
// times the bytes.
TEST(TokenizerSpeedSlow, TenMegabytesOfOneKindAreLinearAndComeBack) {
  // The fetched ones where they are: there is one for each kind of rule.
  const auto tokenizers =
      RealVocabularies({"gpt-2", "llama-spm", "deepseek-llm"},
                       {"qwen2.5-coder-0.5b-instruct-q4_k_m.gguf", "gemma-3-270m-q4_k_m.gguf",
                        "tokenizers/tekken.gguf", "tokenizers/deepseek-v3.gguf"});
  if (tokenizers.empty()) GTEST_SKIP() << "no shared data";
  for (const auto& [name, tokenizer] : tokenizers) {
    for (const char* unit : {"a", " ", "\n", "7", ".", "\u4E2D", "\U0001F600", "aB", "\u0301"}) {
      const std::string text = Repeat(unit, 10'000'000);
      // Both larger than any cache, and than what the allocator keeps: a smaller one is cheaper by
      // the byte. A quadratic step takes 16 times as long.
      const std::string_view quarter = std::string_view(text).substr(0, text.size() / 4);
      EXPECT_TRUE(CostsAtMost({.factor = 8, .slack_seconds = 0.05, .num_rounds = 1},
                              Encoding(tokenizer, quarter), Encoding(tokenizer, text)))
          << name << " " << unit;
      const auto ids = tokenizer.Encode(text, EncodeOptions{});
      ASSERT_TRUE(ids.ok()) << name << " " << unit << ids.status().message();
      const auto decoded = Decode(tokenizer, *ids);
      ASSERT_TRUE(decoded.ok());
      EXPECT_TRUE(*decoded == text) << name << " " << unit;
    }
  }
}
#endif

}  // namespace
}  // namespace quire
