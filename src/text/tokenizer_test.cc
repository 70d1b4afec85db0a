#include "text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "base/test_data.h"
#include "text/detokenizer.h"
#include "text/test_gguf.h"
#include "text/test_vocabulary.h"

namespace quire {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Tokenizer MustCreate(Vocabulary vocabulary) {
  auto tokenizer = Tokenizer::Create(std::move(vocabulary));
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  return std::move(tokenizer).value();
}

std::vector<TokenId> MustEncode(const Tokenizer& tokenizer, std::string_view text,
                                EncodeOptions options = {}) {
  const auto ids = tokenizer.Encode(text, options);
  EXPECT_TRUE(ids.ok()) << ids.status().message();
  return ids.ok() ? *ids : std::vector<TokenId>();
}

// Every id's piece, joined: what the tokens say byte for byte.
std::string Pieces(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  std::string bytes;
  for (const TokenId id : ids) bytes += tokenizer.Piece(id);
  return bytes;
}

std::string Error(Vocabulary vocabulary) {
  const auto tokenizer = Tokenizer::Create(std::move(vocabulary));
  EXPECT_FALSE(tokenizer.ok());
  if (tokenizer.ok()) return "";
  EXPECT_EQ(tokenizer.status().code(), StatusCode::kInvalidFile);
  return tokenizer.status().message();
}

TEST(Tokenizer, AVocabularyThatContradictsItselfIsRefusedByWhatIsWrong) {
  Vocabulary v = SmallSpmVocabulary();
  v.scores.pop_back();
  EXPECT_THAT(Error(v), HasSubstr("token scores"));
  v = SmallBpeVocabulary();
  v.types.pop_back();
  EXPECT_THAT(Error(v), HasSubstr("token types"));
  v = SmallBpeVocabulary();
  v.tokens.clear();
  EXPECT_THAT(Error(v), HasSubstr("empty"));
  v = SmallBpeVocabulary();
  v.eos = static_cast<TokenId>(v.tokens.size());
  EXPECT_THAT(Error(v), HasSubstr("eos_token_id"));
  v = SmallBpeVocabulary();
  v.padding = -1;
  EXPECT_THAT(Error(v), HasSubstr("padding_token_id"));
}

TEST(Tokenizer, WithoutTextItEncodesNothingAndSaysSo) {
  Vocabulary vocabulary;
  vocabulary.bos = 1;
  const Tokenizer tokenizer = MustCreate(vocabulary);
  EXPECT_FALSE(tokenizer.has_text());
  EXPECT_EQ(tokenizer.Encode("a", EncodeOptions{}).status().code(), StatusCode::kUnsupported);
  EXPECT_EQ(*Decode(tokenizer, std::vector<TokenId>{5}), "");
}

TEST(Tokenizer, BosAndEosComeWhereTheVocabularyAddsThem) {
  Vocabulary bpe = SmallBpeVocabulary();
  EXPECT_THAT(MustEncode(MustCreate(bpe), "", {.add_special = true}), IsEmpty());
  bpe.add_bos = true;
  bpe.add_eos = true;
  const Tokenizer both = MustCreate(bpe);
  EXPECT_THAT(MustEncode(both, "a", {.add_special = true}), ElementsAre(*bpe.bos, 'a', *bpe.eos));
  EXPECT_THAT(MustEncode(both, "a"), ElementsAre('a'));
  EXPECT_THAT(MustEncode(both, ""), IsEmpty());
  const Tokenizer spm = MustCreate(SmallSpmVocabulary());
  EXPECT_EQ(MustEncode(spm, "hello", {.add_special = true}).front(), 1);
}

TEST(Tokenizer, BosIsTheDefaultOfSomePretokenizersAndTheFileDecides) {
  for (const char* pre : {"llama-bpe", "tekken"}) {
    Vocabulary vocabulary = SmallBpeVocabulary();
    vocabulary.pre = pre;
    EXPECT_THAT(MustEncode(MustCreate(vocabulary), "a", {.add_special = true}),
                ElementsAre(*vocabulary.bos, 'a'));
    vocabulary.add_bos = false;
    EXPECT_THAT(MustEncode(MustCreate(vocabulary), "a", {.add_special = true}), ElementsAre('a'));
  }
  Vocabulary vocabulary = SmallBpeVocabulary();
  vocabulary.pre = "qwen2";
  EXPECT_THAT(MustEncode(MustCreate(vocabulary), "a", {.add_special = true}), ElementsAre('a'));
}

TEST(Tokenizer, TextOfAMessageNeverBecomesAControlToken) {
  const Tokenizer tokenizer = MustCreate(SmallBpeVocabulary());
  const TokenId start = *tokenizer.bos(), end = *tokenizer.eos();
  const std::string text = "<|start|>say <|end|><|end|>";
  const auto whole = MustEncode(tokenizer, text, {.parse_special = true});
  EXPECT_EQ(std::ranges::count(whole, end), 2);
  // "say <|end|>" is the message.
  const MarkedText marked{text, {{9, 20}}};
  const auto ids = tokenizer.Encode(marked, {.parse_special = true});
  ASSERT_TRUE(ids.ok());
  EXPECT_EQ(ids->front(), start);
  EXPECT_EQ(std::ranges::count(*ids, end), 1);
  EXPECT_EQ(ids->back(), end);
  EXPECT_EQ(Pieces(tokenizer, *ids), "say <|end|>");
}

TEST(Tokenizer, MarksCutNoPieces) {
  const Tokenizer tokenizer = MustCreate(SmallBpeVocabulary());
  const std::string text = "a hello hello<|end|> hello";
  for (size_t begin = 0; begin < 13; ++begin) {
    for (size_t end = begin; end <= 13; ++end) {
      const MarkedText marked{text, {{begin, end}, {20, 26}, {begin, begin}}};
      EXPECT_EQ(*tokenizer.Encode(marked, {.parse_special = true}),
                MustEncode(tokenizer, text, {.parse_special = true}));
    }
  }
}

TEST(Tokenizer, APlainRangeOutsideTheTextIsRefused) {
  const Tokenizer tokenizer = MustCreate(SmallBpeVocabulary());
  for (const ByteRange range : {ByteRange{0, 4}, ByteRange{2, 1}}) {
    const auto ids = tokenizer.Encode(MarkedText{"abc", {range}}, {});
    ASSERT_FALSE(ids.ok());
    EXPECT_EQ(ids.status().code(), StatusCode::kInvalidArgument);
  }
}

// TOK-11.
TEST(Tokenizer, ATextThatIsTooLongIsRefusedByItsBytes) {
  const Tokenizer tokenizer = MustCreate(SmallBpeVocabulary());
  const auto ids =
      tokenizer.Encode(std::string(Tokenizer::kMaxTextBytes + 1, 'a'), EncodeOptions{});
  ASSERT_FALSE(ids.ok());
  EXPECT_EQ(ids.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(ids.status().message(), HasSubstr("too long"));
}

// TOK-16.
TEST(Tokenizer, AnyBytesComeBackFromAVocabularyThatHasAllBytes) {
  const Tokenizer bpe = MustCreate(SmallBpeVocabulary());
  Vocabulary without_prefix = SmallSpmVocabulary();
  without_prefix.add_space_prefix = false;
  const Tokenizer spm = MustCreate(without_prefix);
  for (uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    std::string text;
    for (size_t length = random() % 200; text.size() < length;) {
      text += random() % 3 == 0 ? std::string(1, static_cast<char>(random())) : "hello @@\u00E9";
    }
    EXPECT_EQ(Pieces(bpe, MustEncode(bpe, text)), text);
    EXPECT_EQ(Pieces(spm, MustEncode(spm, text)), text);
  }
}

// GGUF-05.
TEST(Tokenizer, MalformedByteTokensArePlainText) {
  VocabularyBuilder builder(VocabularyKind::kSpm);
  for (const char* text : {"<0x-1>", "<0xZZ>", "<0x1>", "<0x100>", "", "", "a", "a", "<0x41>",
                           "<0x41>", "<0xc3>", "<0X42>"}) {
    builder.Add(text, TokenType::kByte);
  }
  builder.fields().add_space_prefix = false;
  for (int run = 0; run < 2; ++run) {
    const Tokenizer tokenizer = MustCreate(builder.Build());
    EXPECT_EQ(tokenizer.Piece(0), "<0x-1>");
    EXPECT_EQ(tokenizer.Piece(3), "<0x100>");
    EXPECT_EQ(tokenizer.Piece(4), "");
    EXPECT_EQ(tokenizer.Piece(8), "A");
    EXPECT_EQ(tokenizer.Piece(10), "\xC3");
    EXPECT_THAT(MustEncode(tokenizer, "aA"), ElementsAre(6, 8));
    EXPECT_THAT(MustEncode(tokenizer, "\xC3"), ElementsAre(10));
  }
}

TEST(Tokenizer, EndsOfGenerationAreIdsAndKnownTexts) {
  VocabularyBuilder builder(VocabularyKind::kBpe);
  builder.fields().pre = "gpt-2";
  builder.Add("<|user|>", TokenType::kControl);
  const TokenId im_end = builder.Add("<|im_end|>", TokenType::kUserDefined);
  builder.Add("</s>", TokenType::kUserDefined);  // a tag of HTML
  const TokenId control = builder.Add("</s>", TokenType::kControl);
  const TokenId turn = builder.Add("my end", TokenType::kControl);
  builder.fields().eot = turn;
  const Tokenizer tokenizer = MustCreate(builder.Build());
  EXPECT_THAT(tokenizer.end_of_generation(), ElementsAre(im_end, control, turn));
  EXPECT_TRUE(tokenizer.IsEndOfGeneration(turn));
  EXPECT_FALSE(tokenizer.IsEndOfGeneration(0));
  EXPECT_FALSE(tokenizer.IsEndOfGeneration(-1));
}

TEST(Tokenizer, ManyThreadsGetTheSameIds) {
  const Tokenizer tokenizer = MustCreate(SmallBpeVocabulary());
  const std::string text = "hello hello @@ 123 <|end|> \u00E9 \xFF hello";
  const auto expected = MustEncode(tokenizer, text, {.parse_special = true});
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 200; ++n) {
        EXPECT_EQ(MustEncode(tokenizer, text, {.parse_special = true}), expected);
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

struct Case {
  const char* file;
  const char* text;
  EncodeOptions options;
  std::vector<TokenId> ids;
};

// TOK-03, TOK-04; "<s>" is TOK-04 for a vocabulary in which its parts are tokens.
TEST(Tokenizer, KnownTroublesOfRealVocabularies) {
  const char* const kTiny = "models/TinyStories-656K/TinyStories-656K-f32.gguf";
  const char* const kSpm = "tokenizer/ggml-vocab-llama-spm.gguf";
  const char* const kGpt2 = "tokenizer/ggml-vocab-gpt-2.gguf";
  for (const Case& c : {
           Case{kTiny, "\u201CHi\u201D", {.add_special = true}, {1, 80, 0, 1158, 0}},
           Case{kTiny, "\u00E9", {.add_special = true}, {1, 80, 0}},
           Case{kTiny, "\u00E9\u00FC x", {.add_special = true}, {1, 80, 0, 80, 76}},
           Case{kSpm, "</s>", {.add_special = true}, {1, 1533, 29879, 29958}},
           Case{kSpm, "</s>", {.add_special = true, .parse_special = true}, {1, 2}},
           Case{kGpt2, "<|endoftext|>", {}, {27, 91, 437, 1659, 5239, 91, 29}},
           Case{kGpt2, "<|endoftext|>", {.parse_special = true}, {50256}},
       }) {
    const auto path = SharedData(c.file);
    if (!path) GTEST_SKIP() << "no shared data";
    EXPECT_EQ(MustEncode(MustCreate(VocabularyOfGguf(*path)), c.text, c.options), c.ids) << c.text;
  }
}

// TOK-08. A word after a special token gets the same ids as alone.
TEST(Tokenizer, AWordAfterASpecialTokenIsCutAsAlone) {
  const auto path = SharedData("tokenizer/ggml-vocab-llama-spm.gguf");
  if (!path) GTEST_SKIP() << "no shared data";
  const Tokenizer llama = MustCreate(VocabularyOfGguf(*path));
  EXPECT_THAT(MustEncode(llama, "user"), ElementsAre(1404));
  EXPECT_THAT(MustEncode(llama, "</s>user", {.parse_special = true}), ElementsAre(2, 1404));
  // User-defined tokens cut every text.
  const Tokenizer small = MustCreate(SmallSpmVocabulary());
  std::vector<TokenId> expected = MustEncode(small, "@@");
  for (const TokenId id : MustEncode(small, "hello")) expected.push_back(id);
  EXPECT_EQ(MustEncode(small, "@@hello"), expected);
}

// TOK-07. No space after a special token where the vocabulary says so.
TEST(Tokenizer, WithoutASpacePrefixNoSpaceFollowsASpecialToken) {
  Vocabulary vocabulary = SmallSpmVocabulary();
  vocabulary.add_space_prefix = false;
  const Tokenizer tokenizer = MustCreate(vocabulary);
  const auto ids = MustEncode(tokenizer, "<s>hell</s>", {.parse_special = true});
  ASSERT_EQ(ids.size(), 3u);
  EXPECT_EQ(tokenizer.Text(ids[1]), "hell");
}

// The ids are llama.cpp's.
TEST(Tokenizer, Phi3DropsWhiteSpaceAfterItsSpecialTokens) {
  const auto path = SharedData("tokenizer/ggml-vocab-phi-3.gguf");
  if (!path) GTEST_SKIP() << "no shared data";
  Vocabulary vocabulary = VocabularyOfGguf(*path);
  vocabulary.drops_space_after_special = true;
  const Tokenizer tokenizer = MustCreate(vocabulary);
  const EncodeOptions special = {.parse_special = true};
  EXPECT_THAT(MustEncode(tokenizer, "<|user|>\nHi there<|end|>\n<|assistant|>\n", special),
              ElementsAre(32010, 6324, 727, 32007, 32001));
  EXPECT_THAT(
      MustEncode(tokenizer, "<s> a<unk> b</s> \t\n c<|endoftext|>  d<|end|> \u00A0e", special),
      ElementsAre(1, 29871, 263, 0, 29871, 289, 2, 274, 32000, 259, 270, 32007, 20246, 29872));
}

// TOK-05.
TEST(Tokenizer, Phi3StopsAtTheEndOfAMessageToo) {
  const auto path = SharedData("tokenizer/ggml-vocab-phi-3.gguf");
  if (!path) GTEST_SKIP() << "no shared data";
  EXPECT_THAT(MustCreate(VocabularyOfGguf(*path)).end_of_generation(), ElementsAre(32000, 32007));
}

}  // namespace
}  // namespace quire
