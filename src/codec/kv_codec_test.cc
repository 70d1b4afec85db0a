#include "codec/kv_codec.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "codec/code_units.h"

namespace quire {
namespace {

KvGeometry Geometry(uint32_t page_size, uint32_t head_dim_k, uint32_t head_dim_v) {
  return {.page_size = page_size,
          .num_layers = 3,
          .num_kv_heads = 2,
          .head_dim_k = head_dim_k,
          .head_dim_v = head_dim_v};
}

TEST(KvCodec, NamesParseBack) {
  for (KvCodec codec : {KvCodec::kF32, KvCodec::kF16, KvCodec::kKivi4}) {
    auto parsed = ParseKvCodec(KvCodecName(codec));
    ASSERT_TRUE(parsed.ok());
    EXPECT_EQ(parsed.value(), codec);
  }
  EXPECT_EQ(ParseKvCodec("q8_0").status().code(), StatusCode::kInvalidArgument);
}

TEST(KvCodec, F16PageOfSmolLm2IsElevenHundredKibibytes) {
  auto layout = MakeKvLayout(
      {.page_size = 64, .num_layers = 30, .num_kv_heads = 3, .head_dim_k = 64, .head_dim_v = 64},
      KvCodec::kF16, KvCodec::kF16);
  ASSERT_TRUE(layout.ok());
  EXPECT_EQ(layout->chunk_bytes, 2u * 64 * 64 * 2);
  EXPECT_EQ(layout->page_bytes(), 30u * 3 * 16384);
}

TEST(KvCodec, PartsStartAtMultiplesOf64) {
  for (uint32_t page_size : {16u, 48u, 64u})
    for (uint32_t dim : {1u, 8u, 16u, 80u, 96u, 127u, 256u})
      for (KvCodec codec : {KvCodec::kF32, KvCodec::kF16}) {
        auto layout = MakeKvLayout(Geometry(page_size, dim, dim), codec, codec);
        ASSERT_TRUE(layout.ok());
        EXPECT_EQ(layout->v_codes_offset % 64, 0u);
        EXPECT_EQ(layout->chunk_bytes % 64, 0u);
        EXPECT_GE(layout->chunk_bytes, 2 * page_size * dim * KvElementBytes(codec));
      }
}

TEST(KvCodec, EveryValueHasAPlaceOfItsOwnInsideItsPart) {
  for (uint32_t dim : {1u, 8u, 16u, 24u, 80u, 96u}) {
    auto layout = MakeKvLayout(Geometry(32, dim, dim), KvCodec::kF32, KvCodec::kF32);
    ASSERT_TRUE(layout.ok());
    std::set<size_t> k, v;
    for (uint32_t token = 0; token < 32; ++token)
      for (uint32_t channel = 0; channel < dim; ++channel) {
        k.insert(KElement(*layout, token, channel));
        v.insert(VElement(*layout, token, channel));
      }
    EXPECT_EQ(k.size(), size_t{32} * dim);
    EXPECT_EQ(v.size(), size_t{32} * dim);
    EXPECT_EQ(*k.rbegin(), size_t{32} * dim - 1);
    EXPECT_EQ(*v.rbegin(), size_t{32} * dim - 1);
  }
}

// Bits a value, parameters and padding included: section "A KV page" of docs/formats.md.
TEST(KvCodec, Kivi4TakesFourBitsAndItsParameters) {
  const auto bits = [](uint32_t dim, uint32_t page_size) {
    const auto layout =
        MakeKvLayout(Geometry(page_size, dim, dim), KvCodec::kKivi4, KvCodec::kKivi4);
    EXPECT_TRUE(layout.ok());
    const double values = double{8} / (page_size * dim);
    return std::pair(layout->v_params_offset * values,
                     (layout->chunk_bytes - layout->v_params_offset) * values);
  };
  EXPECT_EQ(bits(64, 64), std::pair(4.5, 4.5));
  EXPECT_EQ(bits(64, 128), std::pair(4.25, 4.5));
  EXPECT_EQ(bits(128, 64), std::pair(4.5, 4.25));
  EXPECT_EQ(bits(256, 128), std::pair(4.25, 4.25));
}

TEST(KvCodec, PartsOfASealedChunkFollowEachOther) {
  for (uint32_t page_size : {16u, 48u, 64u})
    for (uint32_t dim : {1u, 8u, 17u, 80u, 127u, 128u, 129u, 256u}) {
      const auto layout =
          MakeKvLayout(Geometry(page_size, dim, dim), KvCodec::kKivi4, KvCodec::kKivi4);
      ASSERT_TRUE(layout.ok());
      EXPECT_EQ(layout->k_codes_offset, (dim * 4 + 63) / 64 * 64);
      EXPECT_EQ(layout->v_params_offset - layout->k_codes_offset,
                (page_size * UnitsOf(dim) * 4 + 63) / 64 * 64);
      EXPECT_EQ(layout->v_codes_offset - layout->v_params_offset,
                (page_size * ChannelGroupsOf(dim) * 4 + 63) / 64 * 64);
      EXPECT_EQ(layout->chunk_bytes - layout->v_codes_offset, (page_size * dim / 2 + 63) / 64 * 64);
      std::set<std::pair<size_t, uint32_t>> k, v;  // of each value, its unit and its shift
      for (uint32_t token = 0; token < page_size; ++token)
        for (uint32_t channel = 0; channel < dim; ++channel) {
          k.emplace(KUnit(*layout, token, channel), CodeShift(channel % kCodesPerUnit));
          v.emplace(VUnit(*layout, token, channel), CodeShift(token % kCodesPerUnit));
        }
      EXPECT_EQ(k.size(), size_t{page_size} * dim);
      EXPECT_EQ(v.size(), size_t{page_size} * dim);
      EXPECT_EQ(k.rbegin()->first, size_t{page_size} * UnitsOf(dim) - 1);
      EXPECT_EQ(v.rbegin()->first, size_t{page_size} * dim / kCodesPerUnit - 1);
    }
}

TEST(KvCodec, ImpossibleGeometryIsRefused) {
  for (uint32_t page_size : {0u, 8u, 40u, 8192u})
    EXPECT_FALSE(MakeKvLayout(Geometry(page_size, 64, 64), KvCodec::kF16, KvCodec::kF16).ok());
  EXPECT_FALSE(MakeKvLayout(Geometry(64, 0, 64), KvCodec::kF16, KvCodec::kF16).ok());
  EXPECT_FALSE(MakeKvLayout(Geometry(4096, 1u << 30, 64), KvCodec::kF16, KvCodec::kF16).ok());
}

}  // namespace
}  // namespace quire
