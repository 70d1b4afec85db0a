#include "text/special_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "text/test_vocabulary.h"

namespace quire {
namespace {

using testing::ElementsAre;

std::vector<TokenId> Ids(const std::vector<SpecialTokens::Cut>& cuts) {
  std::vector<TokenId> ids;
  for (const auto& cut : cuts) ids.push_back(cut.id);
  return ids;
}

TEST(SpecialTokens, ControlTokensAreFoundOnlyOnRequestAndNeverInPlainText) {
  VocabularyBuilder builder(VocabularyKind::kBpe);
  const TokenId end = builder.Add("<|end|>", TokenType::kControl);
  const TokenId at = builder.Add("@@", TokenType::kUserDefined);
  builder.Add("plain", TokenType::kNormal);
  const SpecialTokens special(builder.Build());
  const std::string text = "plain <|end|> @@ <|end|>";
  EXPECT_THAT(Ids(special.Find(text, {}, false)), ElementsAre(at));
  EXPECT_THAT(Ids(special.Find(text, {}, true)), ElementsAre(end, at, end));
  // One byte of the first token is plain; user-defined tokens do not care.
  const ByteRange first[] = {{12, 16}};
  EXPECT_THAT(Ids(special.Find(text, first, true)), ElementsAre(at, end));
  // Ranges that end where a token begins, or begin where it ends, do not touch it.
  const ByteRange around[] = {{0, 6}, {13, 17}};
  EXPECT_THAT(Ids(special.Find(text, around, true)), ElementsAre(end, at, end));
}

TEST(SpecialTokens, AShorterTokenIsFoundWhereAPlainRangeForbidsTheLongerOne) {
  VocabularyBuilder builder(VocabularyKind::kBpe);
  const TokenId shorter = builder.Add("<a>", TokenType::kControl);
  builder.Add("<a><b>", TokenType::kControl);
  const SpecialTokens special(builder.Build());
  const ByteRange plain[] = {{4, 6}};
  const auto cuts = special.Find("<a><b>", plain, true);
  ASSERT_EQ(cuts.size(), 1u);
  EXPECT_EQ(cuts[0].id, shorter);
  EXPECT_EQ(cuts[0].end, 3u);
}

TEST(SpecialTokens, EmptyAndRepeatedTextsAreHarmless) {
  VocabularyBuilder builder(VocabularyKind::kSpm);
  builder.Add("", TokenType::kControl);
  const TokenId first = builder.Add("<x>", TokenType::kControl);
  builder.Add("<x>", TokenType::kUserDefined);
  const SpecialTokens special(builder.Build());
  EXPECT_THAT(Ids(special.Find("a<x>b", {}, true)), ElementsAre(first));
  EXPECT_TRUE(special.Find("", {}, true).empty());
}

// Token by token, the longest first, over the parts that are left.
std::vector<SpecialTokens::Cut> ReferenceFind(const Vocabulary& vocabulary, std::string_view text) {
  std::vector<TokenId> order(vocabulary.tokens.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<TokenId>(i);
  std::ranges::stable_sort(order, [&](TokenId a, TokenId b) {
    return vocabulary.tokens[a].size() > vocabulary.tokens[b].size();
  });
  std::vector<SpecialTokens::Cut> cuts;
  std::vector<bool> covered(text.size());
  for (const TokenId id : order) {
    const std::string_view token = vocabulary.tokens[id];
    for (size_t at = text.find(token); at != text.npos; at = text.find(token, at)) {
      const auto begin = covered.begin() + static_cast<ptrdiff_t>(at);
      const auto end = begin + static_cast<ptrdiff_t>(token.size());
      if (std::find(begin, end, true) != end) {
        ++at;
        continue;
      }
      std::fill(begin, end, true);
      cuts.push_back({at, at + token.size(), id});
      at += token.size();
    }
  }
  std::ranges::sort(cuts, {}, &SpecialTokens::Cut::begin);
  return cuts;
}

TEST(SpecialTokens, OverlapsAreCutAsTheReferenceCutsThem) {
  for (uint32_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const auto letters = [&](size_t length) {
      std::string word;
      while (word.size() < length) word += static_cast<char>('a' + random() % 2);
      return word;
    };
    VocabularyBuilder builder(VocabularyKind::kBpe);
    std::vector<std::string> seen;
    for (int i = 0; i < 6; ++i) {
      const std::string word = letters(1 + random() % 5);
      if (std::ranges::find(seen, word) != seen.end()) continue;
      seen.push_back(word);
      builder.Add(word, TokenType::kUserDefined);
    }
    const Vocabulary vocabulary = builder.Build();
    const std::string text = letters(random() % 60);
    const auto cuts = SpecialTokens(vocabulary).Find(text, {}, false);
    const auto expected = ReferenceFind(vocabulary, text);
    ASSERT_EQ(Ids(cuts), Ids(expected));
    for (size_t i = 0; i < cuts.size(); ++i) EXPECT_EQ(cuts[i].begin, expected[i].begin);
  }
}

}  // namespace
}  // namespace quire
