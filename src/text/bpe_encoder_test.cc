#include "text/bpe_encoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

#include "text/byte_alphabet.h"
#include "text/test_vocabulary.h"

namespace quire {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<TokenId> Encode(const Vocabulary& vocabulary, std::string_view text) {
  const auto encoder = BpeEncoder::Create(vocabulary);
  EXPECT_TRUE(encoder.ok()) << encoder.status().message();
  auto scratch = BpeEncoder::Scratch::Create();
  EXPECT_TRUE(scratch.ok());
  std::vector<TokenId> ids;
  const Status status = encoder->Encode(text, &*scratch, &ids);
  EXPECT_TRUE(status.ok()) << status.message();
  return ids;
}

// One piece of letters, merged as the rule says, with strings.
std::vector<TokenId> ReferenceEncode(const Vocabulary& vocabulary, const std::string& piece) {
  std::map<std::string, TokenId> ids;
  for (size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    ids.emplace(vocabulary.tokens[i], static_cast<TokenId>(i));
  }
  std::map<std::string, size_t> ranks;
  for (size_t i = 0; i < vocabulary.merges.size(); ++i) ranks.emplace(vocabulary.merges[i], i);
  std::vector<std::string> parts;
  for (const char c : piece) parts.emplace_back(1, c);
  while (true) {
    size_t best = parts.size();
    size_t best_rank = SIZE_MAX;
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      const auto found = ranks.find(parts[i] + " " + parts[i + 1]);
      if (found == ranks.end() || found->second >= best_rank) continue;
      best = i;
      best_rank = found->second;
    }
    if (best == parts.size()) break;
    parts[best] += parts[best + 1];
    parts.erase(parts.begin() + static_cast<ptrdiff_t>(best) + 1);
  }
  std::vector<TokenId> result;
  for (const auto& part : parts) {
    if (const auto found = ids.find(part); found != ids.end()) {
      result.push_back(found->second);
      continue;
    }
    for (const char c : part) {
      if (const auto found = ids.find(std::string(1, c)); found != ids.end()) {
        result.push_back(found->second);
      }
    }
  }
  return result;
}

// Merges whose results are no tokens, letters without one, merges listed twice.
TEST(BpeEncoder, GivesWhatTheReferenceGives) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    std::vector<std::string> known = {"a", "b", "c", "d"};
    std::vector<std::string> merges;
    for (int i = 0; i < 15; ++i) {
      const std::string left = known[random() % known.size()];
      const std::string right = known[random() % known.size()];
      merges.push_back(left + " " + right);
      known.push_back(left + right);
    }
    VocabularyBuilder builder(VocabularyKind::kBpe);
    builder.fields().pre = "gpt-2";
    for (const auto& text : known) {
      if (random() % 4 != 0) builder.Add(text);
    }
    Vocabulary vocabulary = builder.Build();
    vocabulary.merges.assign(merges.begin(), merges.end());
    std::string piece;
    for (size_t length = random() % 120; piece.size() < length;) {
      piece += static_cast<char>('a' + random() % 4);
    }
    EXPECT_EQ(Encode(vocabulary, piece), ReferenceEncode(vocabulary, piece)) << piece;
  }
}

TEST(BpeEncoder, APieceThatIsATokenIsNotMergedWhereTheRuleSaysSo) {
  VocabularyBuilder builder(VocabularyKind::kBpe);
  builder.AddByteCharacters();
  builder.AddMerge("a", "b");
  const TokenId abc = builder.Add("abc");  // no merge makes it
  const TokenId space = builder.Add(ByteCharacter(' ') + "\u00C3\u00A9");
  builder.Add("xyz", TokenType::kControl);
  builder.Add("\u4E2D");  // a character that stands for no byte is in no piece
  const TokenId ab = 256;
  for (const char* pre : {"llama-bpe", "tekken"}) {
    builder.fields().pre = pre;
    const Vocabulary vocabulary = builder.Build();
    EXPECT_THAT(Encode(vocabulary, "abc \u00E9"), ElementsAre(abc, space)) << pre;
    EXPECT_THAT(Encode(vocabulary, "abcd"), ElementsAre(ab, 'c', 'd'));
    EXPECT_THAT(Encode(vocabulary, "xyz"), ElementsAre('x', 'y', 'z'));
    EXPECT_THAT(Encode(vocabulary, "\u4E2D"), ElementsAre(0xE4, 0xB8, 0xAD));
  }
  for (const char* pre : {"gpt-2", "qwen2", "dbrx"}) {
    builder.fields().pre = pre;
    EXPECT_THAT(Encode(builder.Build(), "abc"), ElementsAre(ab, 'c')) << pre;
  }
}

TEST(BpeEncoder, BytesThatAreNotUtf8AreAPieceOfTheirOwn) {
  const Vocabulary vocabulary = SmallBpeVocabulary();
  const auto bytes = [&](std::string_view text) {
    std::vector<TokenId> ids;
    for (const char c : text) ids.push_back(static_cast<uint8_t>(c));
    return ids;
  };
  for (const char* text : {"\xC3(", "\xF0\x9F\x92", "\xED\xA0\x80"}) {
    EXPECT_EQ(Encode(vocabulary, text), bytes(text));
  }
  const auto ids = Encode(vocabulary, "hello\xFFhello");
  ASSERT_EQ(ids.size(), 3u);
  EXPECT_EQ(vocabulary.tokens[ids[0]], "hello");
  EXPECT_EQ(ids[1], 0xFF);
  EXPECT_EQ(ids[2], ids[0]);
}

TEST(BpeEncoder, BytesWithoutATokenAreDropped) {
  VocabularyBuilder builder(VocabularyKind::kBpe);
  builder.fields().pre = "gpt-2";
  builder.Add("a");
  // "\xF6" as a user-defined token is the letter, not the byte 0xF6 that is written with it.
  builder.Add("\u00F6", TokenType::kUserDefined);
  EXPECT_THAT(Encode(builder.Build(), "aba"), ElementsAre(0, 0));
  EXPECT_THAT(Encode(builder.Build(), "a\xF6"), ElementsAre(0));
}

TEST(BpeEncoder, AMergeWithoutTwoSidesIsRefusedByItsPlace) {
  for (const char* merge : {"", " ", "ab", "ab ", " b"}) {
    Vocabulary vocabulary = SmallBpeVocabulary();
    vocabulary.merges.push_back(merge);
    const auto encoder = BpeEncoder::Create(vocabulary);
    ASSERT_FALSE(encoder.ok()) << merge;
    EXPECT_EQ(encoder.status().code(), StatusCode::kInvalidFile);
    EXPECT_THAT(encoder.status().message(), HasSubstr("merge 8"));
  }
}

TEST(ByteAlphabet, EveryByteHasACharacterOfItsOwn) {
  for (int byte = 0; byte < 256; ++byte) {
    EXPECT_EQ(kCharacterBytes[kByteCharacters[byte]], byte);
  }
  EXPECT_EQ(ByteCharacter(' '), "\u0120");
  EXPECT_EQ(ByteCharacter('\n'), "\u010A");
  EXPECT_EQ(ByteCharacter('a'), "a");
  EXPECT_EQ(ByteCharacter(0xAD), "\u0143");
}

}  // namespace
}  // namespace quire
