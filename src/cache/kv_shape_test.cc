#include "cache/kv_shape.h"

#include <gtest/gtest.h>

namespace quire {
namespace {

KvGroupShape Shape(KvCodec codec, uint32_t window, uint32_t recent_pages) {
  const auto forms = MakeKvForms(
      {.page_size = 16, .num_layers = 2, .num_kv_heads = 3, .head_dim_k = 64, .head_dim_v = 64},
      {.k_codec = codec, .v_codec = codec, .recent_pages = recent_pages}, window);
  EXPECT_TRUE(forms.ok()) << forms.status().message();
  return GroupShapeOf(window, *forms);
}

TEST(KvShape, AGroupOfFinalPagesHasNoOtherForm) {
  const KvGroupShape group = Shape(KvCodec::kF16, 0, 5);
  EXPECT_EQ(group.window, 0u);
  EXPECT_EQ(group.open_page_bytes, 2u * 3 * 16 * 128 * 2);
  EXPECT_FALSE(group.has_sealed());
  EXPECT_EQ(group.sink_pages, 0u);
  EXPECT_EQ(group.recent_pages, 0u);
}

// A sealed chunk: 64 x 4 + 16 x 64 / 2 bytes of K, 16 x 4 + 16 x 64 / 2 of V.
TEST(KvShape, AGroupOfSealedPagesHasTheRuleOfItsForms) {
  const KvGroupShape group = Shape(KvCodec::kKivi4, 0, 5);
  EXPECT_EQ(group.open_page_bytes, 2u * 3 * 16 * 128 * 2);
  EXPECT_EQ(group.sealed_page_bytes, 2u * 3 * (256 + 512 + 64 + 512));
  EXPECT_EQ(group.sink_pages, 1u);
  EXPECT_EQ(group.recent_pages, 5u);
  const KvGroupShape windowed = Shape(KvCodec::kKivi4, 32, 0);
  EXPECT_EQ(windowed.window, 32u);
  EXPECT_EQ(windowed.sink_pages, 0u);
}

}  // namespace
}  // namespace quire
