#include "model/vocabulary_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/gguf_writer.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

// The bytes are the vocabulary's owner, as a file's header memory is.
StatusOr<Vocabulary> VocabularyOf(const GgufWriter& writer) {
  const auto bytes = std::make_shared<const Bytes>(writer.File());
  const auto header = ParseGguf(*bytes, bytes->size());
  EXPECT_TRUE(header.ok()) << header.status().message();
  return ReadVocabulary(**header, bytes);
}

std::string Message(const GgufWriter& writer) { return VocabularyOf(writer).status().message(); }

GgufWriter TinyBpe() {
  GgufWriter writer;
  writer.SetString("tokenizer.ggml.model", "gpt2")
      .SetString("tokenizer.ggml.pre", "smollm")
      .SetStrings("tokenizer.ggml.tokens", {"a", "b", "ab"})
      .SetStrings("tokenizer.ggml.merges", {"a b"})
      .SetString("tokenizer.chat_template", "{{ messages }}");
  return writer;
}

TEST(VocabularyReader, ReadsSentencePiece) {
  const auto vocabulary = VocabularyOf(TinyLlama());
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status().message();
  EXPECT_EQ(vocabulary->kind, VocabularyKind::kSpm);
  ASSERT_EQ(vocabulary->tokens.size(), 12u);
  EXPECT_EQ(vocabulary->tokens[8], "abc") << "the view outlives the header";
  EXPECT_EQ(vocabulary->scores[3], -4);
  EXPECT_EQ(vocabulary->types[9], TokenType::kByte);
  EXPECT_EQ(vocabulary->bos, 1);
  EXPECT_EQ(vocabulary->eos, 2);
  EXPECT_FALSE(vocabulary->eot.has_value());
  EXPECT_EQ(vocabulary->add_bos, true);
  EXPECT_FALSE(vocabulary->add_eos.has_value());
  EXPECT_FALSE(vocabulary->chat_template.has_value());
  EXPECT_TRUE(vocabulary->merges.empty());
}

TEST(VocabularyReader, ReadsBytePairs) {
  const auto vocabulary = VocabularyOf(TinyBpe());
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status().message();
  EXPECT_EQ(vocabulary->kind, VocabularyKind::kBpe);
  EXPECT_EQ(vocabulary->pre, "smollm");
  EXPECT_EQ(vocabulary->merges[0], "a b");
  EXPECT_TRUE(vocabulary->scores.empty());
  EXPECT_TRUE(vocabulary->types.empty());
  EXPECT_EQ(*vocabulary->chat_template, "{{ messages }}");
}

TEST(VocabularyReader, WithoutATokenizerThereAreIdsOnly) {  // GGUF-11
  for (const char* model : {"no_vocab", "none"}) {
    const auto vocabulary = VocabularyOf(TinyLlama().SetString("tokenizer.ggml.model", model));
    ASSERT_TRUE(vocabulary.ok());
    EXPECT_EQ(vocabulary->kind, VocabularyKind::kNone);
    EXPECT_TRUE(vocabulary->tokens.empty());
    EXPECT_FALSE(vocabulary->bos.has_value());
  }
  EXPECT_EQ(VocabularyOf(TinyLlama().Remove("tokenizer.ggml.model"))->kind, VocabularyKind::kNone);
}

TEST(VocabularyReader, OtherTokenizersAreNamed) {
  const auto vocabulary = VocabularyOf(TinyLlama().SetString("tokenizer.ggml.model", "bert"));
  EXPECT_EQ(vocabulary.status().code(), StatusCode::kUnsupported);
  EXPECT_THAT(vocabulary.status().message(), HasSubstr("tokenizer.ggml.model is bert"));
}

TEST(VocabularyReader, IdsOutsideTheVocabularyCountAsNone) {
  const auto vocabulary =
      VocabularyOf(TinyLlama()
                       .Set<uint32_t>("tokenizer.ggml.bos_token_id", 0xFFFFFFFFu)
                       .Set<int32_t>("tokenizer.ggml.eos_token_id", -1)
                       .Set<uint32_t>("tokenizer.ggml.eot_token_id", 12)
                       .Set<uint8_t>("tokenizer.ggml.eom_token_id", 11));
  ASSERT_TRUE(vocabulary.ok());
  EXPECT_FALSE(vocabulary->bos.has_value());
  EXPECT_FALSE(vocabulary->eos.has_value());
  EXPECT_FALSE(vocabulary->eot.has_value());
  EXPECT_EQ(vocabulary->eom, 11);
}

TEST(VocabularyReader, ListsNeedTheirTypeAndLength) {  // GGUF-04
  EXPECT_EQ(
      Message(TinyLlama().SetArray<uint8_t>("tokenizer.ggml.scores", std::vector<uint8_t>(12))),
      "key tokenizer.ggml.scores: found array of 12 u8, need an array of f32 or f64");
  EXPECT_EQ(
      Message(TinyLlama().SetArray<float>("tokenizer.ggml.token_type", std::vector<float>(12))),
      "key tokenizer.ggml.token_type: found array of 12 f32, need an array of integers");
  EXPECT_EQ(Message(TinyLlama().SetArray<float>("tokenizer.ggml.scores", {1, 2})),
            "key tokenizer.ggml.scores has 2 values, but tokenizer.ggml.tokens has 12");
  EXPECT_EQ(Message(TinyLlama().SetArray<int32_t>("tokenizer.ggml.token_type", {1})),
            "key tokenizer.ggml.token_type has 1 values, but tokenizer.ggml.tokens has 12");
  EXPECT_EQ(Message(TinyLlama().Set<uint32_t>("tokenizer.ggml.tokens", 12)),
            "key tokenizer.ggml.tokens: found u32, need an array of string");
  EXPECT_EQ(Message(TinyLlama().Remove("tokenizer.ggml.scores")),
            "key tokenizer.ggml.scores is missing");
  EXPECT_EQ(Message(TinyBpe().Remove("tokenizer.ggml.merges")),
            "key tokenizer.ggml.merges is missing");
  EXPECT_THAT(Message(TinyBpe().SetStrings("tokenizer.ggml.tokens", {})), HasSubstr("0 tokens"));
  EXPECT_FALSE(VocabularyOf(TinyLlama().Set<uint8_t>("tokenizer.ggml.add_bos_token", 1)).ok());
  EXPECT_FALSE(VocabularyOf(TinyLlama().SetString("tokenizer.ggml.bos_token_id", "1")).ok());
}

TEST(VocabularyReader, OnlyPhi3DropsSpaceAfterSpecialTokens) {
  EXPECT_FALSE(VocabularyOf(TinyLlama())->drops_space_after_special);
  for (const char* name : {"Phi3", "Phi-3-mini-4k-instruct", "Phi 3 Mini", "my phi-3.5"}) {
    EXPECT_TRUE(
        VocabularyOf(TinyLlama().SetString("general.name", name))->drops_space_after_special)
        << name;
  }
  for (const char* name : {"Phi-2", "phi 4", "llama-3"}) {
    EXPECT_FALSE(
        VocabularyOf(TinyLlama().SetString("general.name", name))->drops_space_after_special)
        << name;
  }
  EXPECT_FALSE(
      VocabularyOf(TinyBpe().SetString("general.name", "Phi-3"))->drops_space_after_special);
}

TEST(VocabularyReader, UnknownTokenTypesAreUndefined) {
  std::vector<int32_t> types(12, 1);
  types[0] = 99;
  types[1] = -1;
  const auto vocabulary =
      VocabularyOf(TinyLlama().SetArray<int32_t>("tokenizer.ggml.token_type", types));
  ASSERT_TRUE(vocabulary.ok());
  EXPECT_EQ(vocabulary->types[0], TokenType::kUndefined);
  EXPECT_EQ(vocabulary->types[1], TokenType::kUndefined);
}

}  // namespace
}  // namespace quire
