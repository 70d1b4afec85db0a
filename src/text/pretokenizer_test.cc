#include "text/pretokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <sstream>
#include <string>

#include "text/pretokenizer_patterns.h"
#include "text/utf8.h"

namespace quire {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// One name for each rule.
constexpr const char* kRules[] = {
    "default",     "gpt-2",  "llama-bpe", "qwen2",          "qwen35",       "tekken",    "gpt-4o",
    "deepseek-v3", "smollm", "falcon",    "deepseek-coder", "deepseek-llm", "bailingmoe"};

std::vector<std::string> Pieces(const Pretokenizer& pretokenizer, std::string_view text) {
  auto matcher = Pretokenizer::Matcher::Create();
  EXPECT_TRUE(matcher.ok());
  std::vector<std::string> pieces;
  const Status status = pretokenizer.Split(
      text, &*matcher, [&](std::string_view piece) { pieces.emplace_back(piece); });
  EXPECT_TRUE(status.ok()) << status.message();
  return pieces;
}

std::vector<std::string> Names() {
  std::vector<std::string> names;
  std::istringstream list(PretokenizerNames());
  for (std::string name; std::getline(list >> std::ws, name, ',');) names.push_back(name);
  return names;
}

TEST(Pretokenizer, SmolLmTakesDigitsAloneAndOneSpaceWithAWord) {
  const auto pretokenizer = Pretokenizer::Create("smollm");
  ASSERT_TRUE(pretokenizer.ok());
  EXPECT_THAT(Pieces(*pretokenizer, "I'll  go\n\n 12 x"),
              ElementsAre("I", "'ll", " ", " go", "\n\n ", "1", "2", " x"));
}

TEST(Pretokenizer, AnUnknownNameIsRefusedWithTheKnownOnes) {
  for (const char* name : {"poro-chat", "bloom", "kimi-k2", "afmoe", "gpt-2 ", "GPT-2"}) {
    const auto pretokenizer = Pretokenizer::Create(name);
    ASSERT_FALSE(pretokenizer.ok());
    EXPECT_EQ(pretokenizer.status().code(), StatusCode::kUnsupported);
    EXPECT_THAT(pretokenizer.status().message(), HasSubstr("smollm"));
  }
}

TEST(Pretokenizer, EveryKnownNameCompilesAndLosesNothing) {
  std::mt19937 random(7);
  std::string text;
  while (text.size() < 20000) {
    const uint32_t kind = random() % 4;
    const uint32_t bits = random();
    if (kind == 0) text += "a1 .\n'sZ\t-"[bits % 10];
    if (kind == 1) text += {static_cast<char>(0xC3), static_cast<char>(0x80 | bits % 64)};
    if (kind == 2) {
      text += {static_cast<char>(0xE4 + bits % 3), static_cast<char>(0x80 | bits / 8 % 64),
               static_cast<char>(0x80 | bits / 512 % 64)};
    }
    if (kind == 3) text += "word";
  }
  ASSERT_EQ(ValidUtf8Length(text), text.size());
  for (const std::string& name : Names()) {
    const auto compiled = Pretokenizer::Create(name);
    ASSERT_TRUE(compiled.ok()) << name << compiled.status().message();
    const auto pieces = Pieces(*compiled, text);
    std::string joined;
    for (const auto& piece : pieces) {
      EXPECT_FALSE(piece.empty());
      joined += piece;
    }
    EXPECT_EQ(joined, text) << name;
    // Machines that allow no code at run time interpret the same expressions.
    const auto interpreted =
        Pretokenizer::Compile(FindPretokenizerRule(name)->stages, /*jit=*/false);
    ASSERT_TRUE(interpreted.ok());
    EXPECT_EQ(Pieces(*interpreted, text), pieces) << name;
  }
}

std::string Repeat(std::string_view character, size_t num_bytes) {
  std::string text;
  while (text.size() < num_bytes) text += character;
  return text;
}

// TOK-01. A long run of one character overflowed the stack of other engines' expressions.
TEST(Pretokenizer, ALongRunOfOneCharacterIsOnePiece) {
  for (const char* name : kRules) {
    for (const bool jit : {true, false}) {
      const auto pretokenizer = Pretokenizer::Compile(FindPretokenizerRule(name)->stages, jit);
      ASSERT_TRUE(pretokenizer.ok());
      for (const char* character : {".", "A", " ", "^", "\u4E2D"}) {
        const auto pieces = Pieces(*pretokenizer, Repeat(character, jit ? 1 << 20 : 1 << 16));
        EXPECT_EQ(pieces.size(), 1u) << name << " " << character << " jit " << jit;
      }
    }
  }
}

// An expression that looks at the rest of a run from each of its places takes minutes here.
TEST(Pretokenizer, WhatFollowsARunDoesNotMakeItQuadratic) {
  for (const char* name : kRules) {
    const auto pretokenizer = Pretokenizer::Create(name);
    ASSERT_TRUE(pretokenizer.ok());
    for (const char* character : {" ", "\u2003", "A", "a", "1", ".", "\u4E2D"}) {
      for (const char* tail : {"x", "1", "\u4E2D", ".", "\n"}) {
        const std::string text = Repeat(character, 1 << 17) + tail;
        size_t num_bytes = 0;
        for (const auto& piece : Pieces(*pretokenizer, text)) num_bytes += piece.size();
        EXPECT_EQ(num_bytes, text.size());
      }
    }
  }
}

// TOK-01. A limit of PCRE2 that is read as "no match" would make one piece of the rest of the text.
TEST(Pretokenizer, ALimitOfPcreIsAnErrorAndNoGap) {
  struct Case {
    const char* pattern;
    Pretokenizer::Limits limits;
    bool compiled, interpreted;  // does the limit hold for it?
  };
  // The nested group is entered again for each character and remembers the way back.
  const char* const kNested = "(?:(a|b)(?1)?)+c";
  const char* const kBacktracking = "(?:a+)+c";
  for (const Case& c :
       {Case{kBacktracking, {.match = 1000}, true, true},
        Case{kNested, {.match = 1000}, true, true}, Case{kNested, {.depth = 100}, false, true},
        Case{kNested, {.heap_kib = 64}, false, true}, Case{kNested, {}, true, true}}) {
    for (const bool jit : {true, false}) {
      if (!(jit ? c.compiled : c.interpreted)) continue;
      const auto pretokenizer = Pretokenizer::Compile(std::span(&c.pattern, 1), jit);
      ASSERT_TRUE(pretokenizer.ok());
      auto matcher = Pretokenizer::Matcher::Create(c.limits);
      ASSERT_TRUE(matcher.ok());
      const Status status =
          pretokenizer->Split(std::string(8 << 20, 'a'), &*matcher, [](std::string_view) {});
      EXPECT_EQ(status.code(), StatusCode::kInternal) << c.pattern << " jit " << jit;
      // The working memory is good for the next text.
      EXPECT_TRUE(pretokenizer->Split("ac", &*matcher, [](std::string_view) {}).ok());
    }
  }
}

TEST(Pretokenizer, NoRuleComesNearALimit) {
  const Pretokenizer::Limits tight = {.match = 1 << 21, .depth = 10, .heap_kib = 64};
  for (const char* name : kRules) {
    for (const bool jit : {true, false}) {
      const auto pretokenizer = Pretokenizer::Compile(FindPretokenizerRule(name)->stages, jit);
      ASSERT_TRUE(pretokenizer.ok());
      auto matcher = Pretokenizer::Matcher::Create(tight);
      ASSERT_TRUE(matcher.ok());
      for (const char* unit : {"a", "A", " ", "\n", "1", ".", "'", "\u4E2D", "\U0001F600", "aA",
                               "Aa", " \n", "\u0301", "a\u0301"}) {
        const Status status =
            pretokenizer->Split(Repeat(unit, 1 << 18), &*matcher, [](std::string_view) {});
        EXPECT_TRUE(status.ok()) << name << " " << unit << " jit " << jit << " "
                                 << status.message();
      }
    }
  }
}

TEST(Pretokenizer, ATextThatIsNotUtf8IsRefusedBeforeTheFirstPiece) {
  for (const bool jit : {true, false}) {
    const auto pretokenizer = Pretokenizer::Compile(FindPretokenizerRule("qwen2")->stages, jit);
    ASSERT_TRUE(pretokenizer.ok());
    auto matcher = Pretokenizer::Matcher::Create();
    ASSERT_TRUE(matcher.ok());
    for (const char* text : {"word \xC3(", "\xFF", "\xED\xA0\x80", "a\xF0\x9F\x92"}) {
      const Status status = pretokenizer->Split(text, &*matcher, [](std::string_view) { FAIL(); });
      EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    }
  }
}

// Both are so in the regular expressions of tiktoken and of Hugging Face's tokenizers.
TEST(Pretokenizer, RareCharactersAreWhatTheVocabulariesWereMadeWith) {
  const auto pretokenizer = Pretokenizer::Create("llama-bpe");
  ASSERT_TRUE(pretokenizer.ok());
  EXPECT_THAT(Pieces(*pretokenizer, "a\u180E\u180Eb"), ElementsAre("a", "\u180E\u180E", "b"));
  EXPECT_THAT(Pieces(*pretokenizer, "it'\u017Fo"), ElementsAre("it", "'\u017F", "o"));
  EXPECT_THAT(Pieces(*pretokenizer, "a\u0085\u0085b"), ElementsAre("a", "\u0085", "\u0085b"));
}

TEST(Pretokenizer, NoNameIsTheNameDefault) {
  EXPECT_EQ(FindPretokenizerRule(""), FindPretokenizerRule("default"));
  EXPECT_NE(FindPretokenizerRule(""), nullptr);
}

TEST(Pretokenizer, OnlyLlama3sGroupAndTekkenTakeWholeTokensAndBos) {
  std::vector<std::string> names;
  for (const std::string& name : Names()) {
    const PretokenizerRule& rule = *FindPretokenizerRule(name);
    EXPECT_EQ(rule.whole_tokens, rule.adds_bos) << name;
    if (rule.whole_tokens) names.push_back(name);
  }
  EXPECT_THAT(names, ElementsAre("llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1",
                                 "pixtral", "lfm2", "midm-2.0", "jina-v5-nano", "tekken"));
}

TEST(Pretokenizer, ABadOrEmptyMatchingExpressionIsAnError) {
  const char* const broken[] = {"("};
  EXPECT_EQ(Pretokenizer::Compile(broken).status().code(), StatusCode::kInternal);
  const char* const empty[] = {"x*"};
  const auto pretokenizer = Pretokenizer::Compile(empty);
  ASSERT_TRUE(pretokenizer.ok());
  auto matcher = Pretokenizer::Matcher::Create();
  EXPECT_EQ(pretokenizer->Split("ab", &*matcher, [](std::string_view) {}).code(),
            StatusCode::kInternal);
}

}  // namespace
}  // namespace quire
