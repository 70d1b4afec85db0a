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
constexpr const char* kRules[] = {"gpt-2", "smollm", "falcon", "deepseek-coder", "deepseek-llm"};

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
  for (const char* name : {"", "kimi-k2", "gpt-2 "}) {
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
    const auto interpreted = Pretokenizer::Compile(PretokenizerPatterns(name), /*jit=*/false);
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
      const auto pretokenizer = Pretokenizer::Compile(PretokenizerPatterns(name), jit);
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

TEST(Pretokenizer, AFailureOfPcreIsAnErrorAndNoGap) {
  // A group that is entered again for each character needs stack, and finds none.
  const char* const patterns[] = {"(?:(a|b)(?1)?)+c"};
  const auto pretokenizer = Pretokenizer::Compile(patterns);
  ASSERT_TRUE(pretokenizer.ok());
  auto matcher = Pretokenizer::Matcher::Create();
  ASSERT_TRUE(matcher.ok());
  const Status status =
      pretokenizer->Split(std::string(8 << 20, 'a'), &*matcher, [](std::string_view) {});
  EXPECT_EQ(status.code(), StatusCode::kInternal);
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
