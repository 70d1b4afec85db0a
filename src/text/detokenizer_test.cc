#include "text/detokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "base/test_data.h"
#include "text/test_gguf.h"
#include "text/test_vocabulary.h"
#include "text/utf8.h"

namespace quire {
namespace {

using testing::HasSubstr;
using Ids = std::vector<TokenId>;

Tokenizer MustCreate(Vocabulary vocabulary) {
  auto tokenizer = Tokenizer::Create(std::move(vocabulary));
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  return std::move(tokenizer).value();
}

// Byte `b` of SmallSpmVocabulary.
TokenId Byte(uint8_t b) { return 3 + b; }

TokenId Find(const Tokenizer& tokenizer, std::string_view text) {
  for (TokenId id = 0; tokenizer.IsValid(id); ++id) {
    if (tokenizer.Text(id) == text) return id;
  }
  ADD_FAILURE() << "no token " << text;
  return 0;
}

TEST(Detokenizer, HoldsBackHalfACharacterUntilItIsWhole) {
  const Tokenizer tokenizer = MustCreate(SmallSpmVocabulary());
  Detokenizer detokenizer(&tokenizer, {});
  for (const uint8_t byte : {0xF0, 0x9F, 0x98}) EXPECT_EQ(*detokenizer.Push(Byte(byte)), "");
  EXPECT_EQ(*detokenizer.Push(Byte(0x80)), "\U0001F600");
  EXPECT_EQ(detokenizer.Finish(), "");
}

TEST(Detokenizer, EachErrorBecomesOneReplacement) {
  const Tokenizer tokenizer = MustCreate(SmallSpmVocabulary());
  const TokenId e = Find(tokenizer, "e");
  const std::string bad = "\uFFFD";
  EXPECT_EQ(*Decode(tokenizer, Ids{Byte(0xF0), Byte(0x9F), e}), bad + "e");
  EXPECT_EQ(*Decode(tokenizer, Ids{Byte(0xF0), Byte(0x9F)}), bad);
  EXPECT_EQ(*Decode(tokenizer, Ids{Byte(0xFF), Byte(0x80), e}), bad + bad + "e");
  EXPECT_EQ(*Decode(tokenizer, Ids{Byte(0xC3), Byte(0xC3), Byte(0xA9)}), bad + "\u00E9");
  EXPECT_EQ(*Decode(tokenizer, Ids{Byte(0xED), Byte(0xA0), Byte(0x80)}), bad + bad + bad);
}

TEST(Detokenizer, OneSpaceIsStrippedOnceAtTheStartOfATextOnly) {
  const Tokenizer tokenizer = MustCreate(SmallSpmVocabulary());
  const TokenId hello = Find(tokenizer, "\u2581hello"),
                four = Find(tokenizer, "\u2581\u2581\u2581\u2581");
  EXPECT_EQ(*Decode(tokenizer, Ids{hello, hello}), "hello hello");
  EXPECT_EQ(*Decode(tokenizer, Ids{1, hello}), "hello");
  EXPECT_EQ(*Decode(tokenizer, Ids{hello, hello}, {.starts_text = false}), " hello hello");
  // TOK-10: spaces before punctuation are no matter of the decoder.
  EXPECT_EQ(*Decode(tokenizer, Ids{four, Find(tokenizer, ".")}), "   .");
  Vocabulary without_prefix = SmallSpmVocabulary();
  without_prefix.add_space_prefix = false;
  EXPECT_EQ(*Decode(MustCreate(without_prefix), Ids{hello}), " hello");
}

TEST(Detokenizer, ControlTokensGiveTextOnlyOnRequest) {
  const Tokenizer tokenizer = MustCreate(SmallSpmVocabulary());
  const Ids ids = {1, Find(tokenizer, "\u2581hello"), 0, Find(tokenizer, "@@"), 2};
  EXPECT_EQ(*Decode(tokenizer, ids), "hello@@");
  EXPECT_EQ(*Decode(tokenizer, ids, {.show_special = true}), "<s>hello<unk>@@</s>");
}

// TOK-13.
TEST(Detokenizer, AnIdOutsideTheVocabularyIsRefusedAndChangesNothing) {
  const Tokenizer tokenizer = MustCreate(SmallSpmVocabulary());
  Detokenizer detokenizer(&tokenizer, {});
  EXPECT_EQ(*detokenizer.Push(Byte(0xC3)), "");
  for (const TokenId id :
       {-1, static_cast<TokenId>(tokenizer.num_tokens()), INT32_MAX, INT32_MIN}) {
    const auto text = detokenizer.Push(id);
    ASSERT_FALSE(text.ok());
    EXPECT_EQ(text.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(text.status().message(), HasSubstr("0..276"));
  }
  EXPECT_EQ(*detokenizer.Push(Byte(0xA9)), "\u00E9");
}

TEST(Detokenizer, BytePairTokensAreTheirBytes) {
  const Tokenizer tokenizer = MustCreate(SmallBpeVocabulary());
  EXPECT_EQ(tokenizer.Piece(' '), " ");
  EXPECT_EQ(tokenizer.Piece(0xAD), "\xAD");
  EXPECT_EQ(tokenizer.Piece(Find(tokenizer, "\u0120hello")), " hello");
  EXPECT_EQ(*Decode(tokenizer, Ids{0xC3, 0xA9, ' ', Find(tokenizer, "@@")}), "\u00E9 @@");
  // A character that stands for no byte.
  VocabularyBuilder builder(VocabularyKind::kBpe);
  builder.fields().pre = "gpt-2";
  builder.Add("\u4E2D\u0120\u0250\xFF");
  EXPECT_EQ(MustCreate(builder.Build()).Piece(0), "\u4E2D \u0250\xFF");
}

// Joined parts are the one-shot text; at most 3 bytes wait; all that is sent is whole UTF-8.
void ExpectStreamIsWhole(const Tokenizer& tokenizer, uint32_t seed, size_t num_lists) {
  std::mt19937 random(seed);
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  for (size_t list = 0; list < num_lists; ++list) {
    Ids ids(random() % 40);
    // Half of the lists are of bytes, where characters break most.
    const auto num_tokens = static_cast<uint32_t>(tokenizer.num_tokens());
    const uint32_t bound = list % 2 == 0 ? num_tokens : std::min(num_tokens, 300u);
    for (TokenId& id : ids) id = static_cast<TokenId>(random() % bound);

    Detokenizer detokenizer(&tokenizer, {});
    std::string joined, pieces;
    for (size_t i = 0; i < ids.size(); ++i) {
      const auto part = detokenizer.Push(ids[i]);
      ASSERT_TRUE(part.ok());
      ASSERT_EQ(ValidUtf8Length(*part), part->size());
      joined += *part;
      pieces += tokenizer.Piece(ids[i]);
    }
    const std::string tail = detokenizer.Finish();
    ASSERT_TRUE(tail.empty() || tail == "\uFFFD");
    ASSERT_EQ(joined + tail, *Decode(tokenizer, ids));
    if (tokenizer.adds_space_prefix() && pieces.starts_with(' ')) pieces.erase(0, 1);
    if (ValidUtf8Length(pieces) == pieces.size()) {
      ASSERT_EQ(joined, pieces);
    }
  }
}

TEST(Detokenizer, StreamsOfRandomIdsAreTheOneShotText) {
  ExpectStreamIsWhole(MustCreate(SmallBpeVocabulary()), 1, 2000);
  ExpectStreamIsWhole(MustCreate(SmallSpmVocabulary()), 2, 2000);
  ExpectStreamIsWhole(MustCreate(SmallSpmVocabulary(/*with_bytes=*/false)), 3, 2000);
}

// TOK-10.
TEST(Detokenizer, StreamsOfRandomIdsOfRealVocabulariesAreTheOneShotText) {
  for (const char* name : {"llama-spm", "phi-3", "gpt-2", "mpt", "starcoder", "refact", "falcon",
                           "deepseek-coder", "deepseek-llm"}) {
    const auto path = SharedData(std::string("tokenizer/ggml-vocab-") + name + ".gguf");
    if (!path) GTEST_SKIP() << "no shared data";
    SCOPED_TRACE(name);
    ExpectStreamIsWhole(MustCreate(VocabularyOfGguf(*path)), 4, 3000);
  }
}

#ifdef NDEBUG
constexpr size_t kManyLists = 1'000'000;
#else
constexpr size_t kManyLists = 20'000;  // sanitizers
#endif

// TOK-10.
TEST(DetokenizerSlow, AMillionStreamsOfRandomIdsAreTheOneShotText) {
  for (const char* name : {"llama-spm", "phi-3", "gpt-2", "falcon", "deepseek-llm"}) {
    const auto path = SharedData(std::string("tokenizer/ggml-vocab-") + name + ".gguf");
    if (!path) GTEST_SKIP() << "no shared data";
    SCOPED_TRACE(name);
    ExpectStreamIsWhole(MustCreate(VocabularyOfGguf(*path)), 5, kManyLists);
  }
}

// TOK-06, TOK-09, TOK-15.
TEST(Detokenizer, KnownTroublesOfStories260K) {
  const auto path = SharedData("models/stories260K/stories260K-f32.gguf");
  if (!path) GTEST_SKIP() << "no shared data";
  const Tokenizer tokenizer = MustCreate(VocabularyOfGguf(*path));
  EXPECT_EQ(*Decode(tokenizer, Ids{317}), "Lily");
  EXPECT_EQ(*Decode(tokenizer, Ids{1, 410, 317}), " Lily");
  EXPECT_EQ(*Decode(tokenizer, Ids{403, 317}), "Once Lily");
  EXPECT_EQ(*Decode(tokenizer, Ids{317, 13}), "Lily\n");
  // The end of the greedy answer to "Once upon a time".
  EXPECT_EQ(*Decode(tokenizer, Ids{432, 398, 312, 286, 267, 414, 270, 333, 415, 426, 13, 438, 310}),
            ", but it was too high.\nLily");
  EXPECT_EQ(*Decode(tokenizer, Ids{410, 243, 162}), "\uFFFD");
}

}  // namespace
}  // namespace quire
