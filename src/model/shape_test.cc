#include "model/shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/architecture.h"
#include "model/gguf_writer.h"

namespace quire {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

StatusOr<ModelShape> ShapeOf(const GgufWriter& writer) {
  const Bytes file = writer.File();
  const auto header = ParseGguf(file, file.size());
  EXPECT_TRUE(header.ok()) << header.status().message();
  return ReadShape(**header);
}

std::string Message(const GgufWriter& writer) { return ShapeOf(writer).status().message(); }

TEST(Shape, ReadsTheKeysAndTheirDefaults) {
  const auto shape = ShapeOf(TinyLlama());
  ASSERT_TRUE(shape.ok()) << shape.status().message();
  EXPECT_EQ(shape->architecture, "llama");
  EXPECT_EQ(shape->context_length, 64);
  EXPECT_EQ(shape->embedding_length, 16);
  EXPECT_EQ(shape->num_layers, 2);
  EXPECT_EQ(shape->feed_forward_length, 24);
  EXPECT_EQ(shape->num_q_heads, 4);
  EXPECT_EQ(shape->num_kv_heads, 2);
  EXPECT_EQ(shape->group_size(), 2);
  EXPECT_EQ(shape->head_dim_k, 4);
  EXPECT_EQ(shape->head_dim_v, 4);
  EXPECT_EQ(shape->rms_epsilon, 1e-5f);
  EXPECT_EQ(shape->vocab_size, 12);
  EXPECT_EQ(shape->num_tokens, 12);
  EXPECT_EQ(shape->sliding_window, 0);
  EXPECT_EQ(shape->rope().dimension_count, 4);
  EXPECT_EQ(shape->rope().freq_base, 10000);
  EXPECT_EQ(shape->rope().scaling, RopeScaling::kNone);
  EXPECT_EQ(shape->rope().factor, 1);
  EXPECT_EQ(shape->rope().original_context_length, 64);
  EXPECT_EQ(shape->rope().attn_factor, 1);
  EXPECT_EQ(shape->rope().beta_fast, 32);
  EXPECT_EQ(shape->rope().beta_slow, 1);
  EXPECT_EQ(shape->KvBytesPerToken(2), 2 * (8 + 8) * 2);
}

TEST(Shape, WithoutKvHeadsEveryHeadHasItsOwn) {
  EXPECT_EQ(ShapeOf(TinyLlama().Remove("llama.attention.head_count_kv"))->num_kv_heads, 4);
}

TEST(Shape, RequiredKeysAreNamedWhenMissing) {
  for (const char* key :
       {"general.architecture", "llama.context_length", "llama.embedding_length",
        "llama.block_count", "llama.feed_forward_length", "llama.attention.head_count"})
    EXPECT_EQ(Message(TinyLlama().Remove(key)), std::string("key ") + key + " is missing");
  EXPECT_EQ(Message(TinyLlama().Remove("llama.attention.layer_norm_rms_epsilon")),
            "key llama.attention.layer_norm_rms_epsilon is missing or 0");
}

TEST(Shape, IllTypedKeysAreNamed) {
  EXPECT_EQ(Message(TinyLlama().SetString("llama.block_count", "2")),
            "key llama.block_count: found string, need an integer");
  EXPECT_EQ(Message(TinyLlama().Set<uint32_t>("llama.attention.layer_norm_rms_epsilon", 1)),
            "key llama.attention.layer_norm_rms_epsilon: found u32, need f32 or f64");
  EXPECT_EQ(Message(TinyLlama().Set<uint32_t>("general.architecture", 1)),
            "key general.architecture: found u32, need string");
}

TEST(Shape, AnyIntegerTypeServes) {
  GgufWriter writer = TinyLlama();
  writer.Set<uint64_t>("llama.context_length", 128).Set<int8_t>("llama.block_count", 2);
  writer.Set<double>("llama.attention.layer_norm_rms_epsilon", 0.5);
  const auto shape = ShapeOf(writer);
  ASSERT_TRUE(shape.ok()) << shape.status().message();
  EXPECT_EQ(shape->context_length, 128);
  EXPECT_EQ(shape->rms_epsilon, 0.5);
}

TEST(Shape, HeadDimensionsOfTheFileWin) {  // GGUF-15
  GgufWriter writer = TinyLlama();
  writer.Set<uint32_t>("llama.attention.key_length", 128);
  writer.Set<uint32_t>("llama.attention.value_length", 32);
  const auto shape = ShapeOf(writer);
  ASSERT_TRUE(shape.ok()) << shape.status().message();
  EXPECT_EQ(shape->q_rows(), 4 * 128);
  EXPECT_EQ(shape->k_rows(), 2 * 128);
  EXPECT_EQ(shape->v_rows(), 2 * 32);
  EXPECT_EQ(shape->attention_columns(), 4 * 32);
  EXPECT_EQ(shape->rope().dimension_count, 128);
}

TEST(Shape, ZeroMeansNotSet) {  // GGUF-10
  GgufWriter writer = TinyLlama();
  for (const char* key :
       {"attention.key_length", "attention.value_length", "rope.dimension_count", "vocab_size",
        "attention.sliding_window", "rope.scaling.original_context_length", "expert_count",
        "nextn_predict_layers"})
    writer.Set<uint32_t>(std::string("llama.") + key, 0);
  for (const char* key : {"rope.freq_base", "rope.scaling.factor", "rope.scaling.attn_factor",
                          "attention.scale", "rope.scale_linear"})
    writer.Set<float>(std::string("llama.") + key, 0);
  writer.SetString("llama.rope.scaling.type", "linear");
  const auto shape = ShapeOf(writer);
  ASSERT_TRUE(shape.ok()) << shape.status().message();
  EXPECT_EQ(shape->head_dim_k, 4);
  EXPECT_EQ(shape->rope().dimension_count, 4);
  EXPECT_EQ(shape->rope().freq_base, 10000);
  EXPECT_EQ(shape->rope().factor, 1);
  EXPECT_EQ(shape->rope().scaling, RopeScaling::kNone);
  EXPECT_EQ(shape->rope().original_context_length, 64);
  EXPECT_EQ(shape->sliding_window, 0);
}

TEST(Shape, HeadsThatDoNotDivideAreRefusedWithBothNumbers) {  // GGUF-07
  GgufWriter writer = TinyLlama();
  writer.Set<uint32_t>("llama.attention.head_count", 3)
      .Set<uint32_t>("llama.attention.key_length", 4);
  EXPECT_EQ(
      Message(writer),
      "llama.attention.head_count is 3 and llama.attention.head_count_kv is 2: the first must "
      "be a multiple of the second");
  EXPECT_EQ(Message(TinyLlama().Set<uint32_t>("llama.attention.head_count_kv", 0)),
            "key llama.attention.head_count_kv is 0: need 1 to 4096");
}

TEST(Shape, EmbeddingThatNoHeadDimensionFitsIsRefused) {
  GgufWriter writer = TinyLlama();
  writer.Set<uint32_t>("llama.attention.head_count", 6);
  EXPECT_THAT(Message(writer), AllOf(HasSubstr("llama.embedding_length is 16"),
                                     HasSubstr("llama.attention.head_count is 6"),
                                     HasSubstr("llama.attention.value_length are needed")));
}

TEST(Shape, ListsOfOneValuePerLayerMustBeUniform) {  // GGUF-16
  EXPECT_TRUE(ShapeOf(TinyLlama().SetArray<int32_t>("llama.attention.head_count_kv", {2, 2})).ok());
  EXPECT_TRUE(ShapeOf(TinyLlama().SetArray<uint32_t>("llama.feed_forward_length", {24, 24})).ok());
  EXPECT_THAT(Message(TinyLlama().SetArray<int32_t>("llama.attention.head_count_kv", {4, 0})),
              AllOf(HasSubstr("llama.attention.head_count_kv is 4 in layer 0 and 0 in layer 1"),
                    HasSubstr("not supported yet")));
  EXPECT_EQ(Message(TinyLlama().SetArray<int32_t>("llama.attention.head_count", {4, 4, 4})),
            "key llama.attention.head_count has 3 values for 2 layers");
  EXPECT_FALSE(ShapeOf(TinyLlama().SetArray<int32_t>("llama.attention.head_count", {0, 0})).ok());
  EXPECT_FALSE(ShapeOf(TinyLlama().SetArray<float>("llama.attention.head_count", {4, 4})).ok());
  EXPECT_FALSE(ShapeOf(TinyLlama().SetArray<int32_t>("llama.attention.head_count", {})).ok());
}

TEST(Shape, LayersThatPredictFurtherTokensDoNotCount) {
  EXPECT_EQ(ShapeOf(TinyLlama().Set<uint32_t>("llama.nextn_predict_layers", 1))->num_layers, 1);
  EXPECT_THAT(Message(TinyLlama().Set<uint32_t>("llama.nextn_predict_layers", 2)),
              HasSubstr("no layer is left"));
}

TEST(Shape, RopeIsReadAndChecked) {
  GgufWriter writer = TinyLlama();
  writer.SetString("llama.rope.scaling.type", "yarn")
      .Set<float>("llama.rope.scaling.factor", 4)
      .Set<uint32_t>("llama.rope.scaling.original_context_length", 16)
      .Set<float>("llama.rope.freq_base", 500000)
      .Set<float>("llama.rope.scaling.yarn_beta_fast", 16)
      .Set<float>("llama.rope.scaling.attn_factor", 0.5f)
      .Set<float>("llama.rope.scaling.yarn_log_multiplier", 0.1f)
      .Set<uint32_t>("llama.rope.dimension_count", 2);
  const auto shape = ShapeOf(writer);
  ASSERT_TRUE(shape.ok()) << shape.status().message();
  EXPECT_EQ(shape->rope().scaling, RopeScaling::kYarn);
  EXPECT_EQ(shape->rope().factor, 4);
  EXPECT_EQ(shape->rope().original_context_length, 16);
  EXPECT_EQ(shape->rope().freq_base, 500000);
  EXPECT_EQ(shape->rope().beta_fast, 16);
  EXPECT_EQ(shape->rope().attn_factor, 0.5);
  EXPECT_EQ(shape->rope().dimension_count, 2);
  EXPECT_EQ(shape->rope().log_multiplier, 0) << "llama does not heed the key";

  EXPECT_THAT(
      Message(TinyLlama().Set<uint32_t>("llama.rope.dimension_count", 3)),
      HasSubstr("llama.rope.dimension_count is 3: need an even number, at most the head's 4"));
  EXPECT_FALSE(ShapeOf(TinyLlama().Set<uint32_t>("llama.rope.dimension_count", 6)).ok());
  EXPECT_FALSE(ShapeOf(TinyLlama().Set<float>("llama.rope.freq_base", 1)).ok());
  EXPECT_FALSE(ShapeOf(TinyLlama().Set<float>("llama.rope.freq_base", -10000)).ok());
  EXPECT_FALSE(ShapeOf(TinyLlama().Set<float>("llama.rope.scaling.factor", -1)).ok());
}

TEST(Shape, RopeScalingTypes) {
  GgufWriter writer = TinyLlama();
  writer.Set<float>("llama.rope.scale_linear", 2);
  EXPECT_EQ(ShapeOf(writer)->rope().factor, 2);
  EXPECT_EQ(ShapeOf(writer)->rope().scaling, RopeScaling::kLinear);
  writer.Set<float>("llama.rope.scaling.factor", 8);
  EXPECT_EQ(ShapeOf(writer)->rope().factor, 8);
  writer.SetString("llama.rope.scaling.type", "none");
  EXPECT_EQ(ShapeOf(writer)->rope().factor, 1);
  EXPECT_EQ(ShapeOf(writer)->rope().scaling, RopeScaling::kNone);
  for (const char* type : {"longrope", "dynamic"}) {
    writer.SetString("llama.rope.scaling.type", type);
    const auto shape = ShapeOf(writer);
    EXPECT_EQ(shape.status().code(), StatusCode::kUnsupported);
    EXPECT_THAT(shape.status().message(), HasSubstr(type));
  }
}

TEST(Shape, TokensBeyondTheEmbeddingAreRefusedAndFewerArePadding) {
  EXPECT_THAT(Message(TinyLlama().SetTensor("token_embd.weight", {16, 11})),
              AllOf(HasSubstr("tokenizer.ggml.tokens says 12 tokens"), HasSubstr("11 rows")));
  const auto padded = ShapeOf(TinyLlama().SetTensor("token_embd.weight", {16, 20}));
  EXPECT_EQ(padded->vocab_size, 20);
  EXPECT_EQ(padded->num_tokens, 12);

  GgufWriter without = TinyLlama();
  without.SetString("tokenizer.ggml.model", "no_vocab").Set<uint32_t>("llama.vocab_size", 10);
  EXPECT_EQ(ShapeOf(without)->num_tokens, 10) << "the token list is ignored";
  without.Set<uint32_t>("llama.vocab_size", 13);
  EXPECT_THAT(Message(without), HasSubstr("llama.vocab_size says 13 tokens"));
  EXPECT_EQ(ShapeOf(without.Remove("llama.vocab_size"))->num_tokens, 12);
}

TEST(Shape, AFileWithoutEmbeddingHasNoShape) {
  EXPECT_EQ(Message(TinyLlama().RemoveTensor("token_embd.weight")),
            "tensor token_embd.weight is missing");
  EXPECT_THAT(Message(TinyLlama().SetTensor("token_embd.weight", {12, 16})),
              HasSubstr("tensor token_embd.weight has dims [12, 16]: need [16, "));
}

TEST(Shape, CapsKeepProductsSmall) {
  for (const char* key : {"context_length", "embedding_length", "block_count",
                          "feed_forward_length", "attention.head_count", "attention.key_length"}) {
    const std::string name = std::string("llama.") + key;
    EXPECT_THAT(Message(TinyLlama().Set<uint32_t>(name, 0xFFFFFFFFu)),
                HasSubstr("key " + name + " is 4294967295: need"));
  }
}

}  // namespace
}  // namespace quire
