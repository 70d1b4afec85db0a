#include "text/spm_encoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "text/test_vocabulary.h"
#include "text/utf8.h"

namespace quire {
namespace {

using testing::ElementsAre;

std::vector<TokenId> Encode(const Vocabulary& vocabulary, std::string_view text,
                            bool space_prefix = false) {
  const SpmEncoder encoder = SpmEncoder::Create(vocabulary);
  SpmEncoder::Scratch scratch;
  std::vector<TokenId> ids;
  encoder.Encode(text, space_prefix, &scratch, &ids);
  return ids;
}

// The rule in its plainest form, for normal tokens only.
std::vector<TokenId> ReferenceEncode(const Vocabulary& vocabulary, std::string_view text) {
  std::map<std::string, TokenId> ids;
  for (size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    if (vocabulary.types[i] == TokenType::kNormal) {
      ids.emplace(vocabulary.tokens[i], static_cast<TokenId>(i));
    }
  }
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t length = NextUtf8(text).length;
    parts.push_back(text[0] == ' ' ? std::string(kSpmSpace) : std::string(text.substr(0, length)));
    text.remove_prefix(length);
  }
  while (true) {
    size_t best = parts.size();
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      const auto found = ids.find(parts[i] + parts[i + 1]);
      if (found == ids.end()) continue;
      if (best == parts.size() || vocabulary.scores[found->second] >
                                      vocabulary.scores[ids.at(parts[best] + parts[best + 1])]) {
        best = i;
      }
    }
    if (best == parts.size()) break;
    parts[best] += parts[best + 1];
    parts.erase(parts.begin() + static_cast<ptrdiff_t>(best) + 1);
  }
  std::vector<TokenId> result;
  for (const auto& part : parts) {
    const auto found = ids.find(part);
    if (found != ids.end()) {
      result.push_back(found->second);
    } else if (result.empty() || result.back() != *vocabulary.unknown) {
      result.push_back(*vocabulary.unknown);
    }
  }
  return result;
}

TEST(SpmEncoder, GivesWhatTheReferenceGives) {
  const std::string letters[] = {"a", "b", " ", "\u00E9", "\u4E2D"};
  for (uint32_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const auto word = [&](size_t length) {
      std::string made;
      for (size_t i = 0; i < length; ++i) made += letters[random() % std::size(letters)];
      return made;
    };
    VocabularyBuilder builder(VocabularyKind::kSpm);
    builder.fields().unknown = builder.Add("<unk>", TokenType::kUnknown);
    for (int i = 0; i < 25; ++i) {
      std::string token;
      for (const char c : word(1 + random() % 4)) {
        if (c == ' ') {
          token += kSpmSpace;
        } else {
          token += c;
        }
      }
      // Few scores, so that ties are common.
      builder.Add(token, TokenType::kNormal, static_cast<float>(random() % 5) - 2);
    }
    const Vocabulary vocabulary = builder.Build();
    const std::string text = word(random() % 150);
    EXPECT_EQ(Encode(vocabulary, text), ReferenceEncode(vocabulary, text)) << text;
  }
}

TEST(SpmEncoder, ThePrefixIsOneSpaceAndOnlyForText) {
  const Vocabulary vocabulary = SmallSpmVocabulary();
  EXPECT_EQ(Encode(vocabulary, "hello", true), Encode(vocabulary, " hello"));
  EXPECT_EQ(Encode(vocabulary, " hello", true), Encode(vocabulary, "  hello"));
  EXPECT_TRUE(Encode(vocabulary, "", true).empty());
}

TEST(SpmEncoder, WhatIsNoTokenBecomesItsBytes) {
  const Vocabulary vocabulary = SmallSpmVocabulary();
  EXPECT_THAT(Encode(vocabulary, "\u00DF"), ElementsAre(3 + 0xC3, 3 + 0x9F));
  // TOK-16: bytes that are not UTF-8, too, the same on each call.
  for (int call = 0; call < 2; ++call) {
    EXPECT_THAT(Encode(vocabulary, "\xED\xA0\x80\xFF"),
                ElementsAre(3 + 0xED, 3 + 0xA0, 3 + 0x80, 3 + 0xFF));
  }
}

TEST(SpmEncoder, WithoutByteTokensEachRunOfUnknownsIsOneToken) {
  const Vocabulary vocabulary = SmallSpmVocabulary(/*with_bytes=*/false);
  const auto ids = Encode(vocabulary, "\u00DFxyzhe\xFF\xFE");
  ASSERT_EQ(ids.size(), 3u);
  EXPECT_EQ(ids[0], 0);
  EXPECT_EQ(vocabulary.tokens[ids[1]], "he");
  EXPECT_EQ(ids[2], 0);
}

TEST(SpmEncoder, WordsNeverBecomeControlTokens) {
  VocabularyBuilder builder(VocabularyKind::kSpm);
  builder.Add("<s>", TokenType::kControl, 10);
  for (const char* text : {"<s", "<", "s", ">"}) builder.Add(text, TokenType::kNormal, 1);
  EXPECT_THAT(Encode(builder.Build(), "<s>"), ElementsAre(1, 4));
}

TEST(SpmEncoder, OddScoresAreOrdered) {
  VocabularyBuilder builder(VocabularyKind::kSpm);
  builder.Add("ab", TokenType::kNormal, std::numeric_limits<float>::quiet_NaN());
  builder.Add("bc", TokenType::kNormal, -std::numeric_limits<float>::infinity());
  builder.Add("cd", TokenType::kNormal, -0.0f);
  builder.Add("de", TokenType::kNormal, 0.0f);
  builder.Add("ef", TokenType::kNormal, std::numeric_limits<float>::infinity());
  for (const char* text : {"a", "b", "c", "d", "e", "f"}) builder.Add(text);
  const Vocabulary vocabulary = builder.Build();
  EXPECT_THAT(Encode(vocabulary, "abc"), ElementsAre(5, 1));
  EXPECT_THAT(Encode(vocabulary, "bcd"), ElementsAre(6, 2));
  EXPECT_THAT(Encode(vocabulary, "cde"), ElementsAre(2, 9));  // a tie: the left one
  EXPECT_THAT(Encode(vocabulary, "def"), ElementsAre(8, 4));
}

}  // namespace
}  // namespace quire
