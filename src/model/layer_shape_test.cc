#include "model/layer_shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <utility>

#include "model/gguf_writer.h"

namespace quire {
namespace {

using testing::HasSubstr;
using Keys = std::initializer_list<std::pair<const char*, uint32_t>>;

// read(keys) of a header with these integers under "llama.".
template <class Read>
auto Of(Keys keys, Read&& read) {
  GgufWriter writer;
  for (const auto& [key, value] : keys) writer.Set<uint32_t>(std::string("llama.") + key, value);
  const Bytes file = writer.File();
  const auto header = ParseGguf(file, file.size());
  EXPECT_TRUE(header.ok()) << header.status().message();
  return read(ArchitectureKeys(**header, "llama"));
}

StatusOr<LayerCounts> Counts(Keys keys) { return Of(keys, ReadLayerCounts); }
StatusOr<HeadShape> Heads(int embedding_length, Keys keys) {
  return Of(keys, [=](const ArchitectureKeys& from) {
    return ReadHeadShape(from, embedding_length, {.in_arrays = 2});
  });
}

TEST(LayerShape, LayersThatPredictFurtherTokensAreTheLast) {
  const auto counts = Counts({{"block_count", 62}, {"nextn_predict_layers", 1}});
  ASSERT_TRUE(counts.ok());
  EXPECT_EQ(counts->in_arrays, 62);
  EXPECT_EQ(counts->num_layers(), 61);
  EXPECT_EQ(Counts({{"block_count", 2}})->num_layers(), 2);
  EXPECT_FALSE(Counts({}).ok());
  EXPECT_FALSE(Counts({{"block_count", kMaxLayers + 1}}).ok());
  EXPECT_THAT(
      Counts({{"block_count", 2}, {"nextn_predict_layers", 2}}).status().message(),
      HasSubstr("llama.nextn_predict_layers is 2, but llama.block_count is 2: no layer is left"));
}

TEST(LayerShape, AHeadDimensionIsItsKeyOrTheEmbeddingsPart) {
  const auto plain = Heads(64, {{"attention.head_count", 4}});
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(plain->num_kv_heads, 4);
  EXPECT_EQ(plain->head_dim_k, 16);
  EXPECT_EQ(plain->head_dim_v, 16);
  const auto one = Heads(64, {{"attention.head_count", 4}, {"attention.key_length", 24}});
  EXPECT_EQ(one->head_dim_k, 24);
  EXPECT_EQ(one->head_dim_v, 16);
  const auto both = Heads(65, {{"attention.head_count", 4},
                               {"attention.head_count_kv", 2},
                               {"attention.key_length", 24},
                               {"attention.value_length", 8}});
  EXPECT_EQ(both->num_kv_heads, 2);
  EXPECT_EQ(both->head_dim_k, 24);
  EXPECT_EQ(both->head_dim_v, 8);
}

TEST(LayerShape, WhatGivesNoHeadsIsRefusedWithTheKeys) {
  const auto message = [](int embedding_length, Keys keys) {
    return std::string(Heads(embedding_length, keys).status().message());
  };
  EXPECT_THAT(message(64, {{"attention.head_count", 4}, {"attention.head_count_kv", 3}}),
              HasSubstr("the first must be a multiple of the second"));
  EXPECT_THAT(message(65, {{"attention.head_count", 4}, {"attention.key_length", 24}}),
              HasSubstr("llama.attention.key_length and llama.attention.value_length are needed"));
  EXPECT_THAT(message(kMaxHeadDim + 1, {{"attention.head_count", 1}}), HasSubstr("up to 4096"));
  EXPECT_FALSE(Heads(64, {}).ok());
}

}  // namespace
}  // namespace quire
