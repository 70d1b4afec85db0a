#include "codec/kv_forms.h"

#include <gtest/gtest.h>

#include <string>

namespace quire {
namespace {

constexpr KvGeometry kGeometry = {
    .page_size = 64, .num_layers = 3, .num_kv_heads = 2, .head_dim_k = 64, .head_dim_v = 64};

// Example 13 of the specification: pages of 4, position 13.
TEST(ReadRule, SinkOwnAndRecentPagesAreReadOpen) {
  const auto open = [](ReadRule rule) {
    std::string pages;
    for (uint32_t page = 0; page <= 3; ++page) pages += rule.ReadsOpen(13 / 4, page) ? 'o' : 's';
    return pages;
  };
  EXPECT_EQ(open({.sink_pages = 1, .recent_pages = 0}), "osso");
  EXPECT_EQ(open({.sink_pages = 1, .recent_pages = 1}), "osoo");
  EXPECT_EQ(open({.sink_pages = 0, .recent_pages = 0}), "ssso");
  EXPECT_EQ(open({.sink_pages = 0, .recent_pages = 2}), "sooo");
  EXPECT_EQ(open({.sink_pages = 0, .recent_pages = UINT32_MAX}), "oooo");
}

TEST(KvForms, CodecsThatAreFinalWhenWrittenHaveOneForm) {
  for (const KvCodec codec : {KvCodec::kF16, KvCodec::kF32}) {
    const auto forms = MakeKvForms(kGeometry, {.k_codec = codec, .v_codec = codec}, 0);
    ASSERT_TRUE(forms.ok());
    EXPECT_FALSE(forms->has_sealed());
    EXPECT_EQ(forms->sealed.layout.page_bytes(), 0u);
    EXPECT_EQ(forms->open.k_codec, codec);
    EXPECT_EQ(forms->rule.sink_pages, 0u);
  }
}

TEST(KvForms, APageWiseCodecIsWrittenInF16) {
  const auto forms =
      MakeKvForms(kGeometry, {.k_codec = KvCodec::kKivi4, .v_codec = KvCodec::kKivi4}, 0);
  ASSERT_TRUE(forms.ok());
  EXPECT_TRUE(forms->has_sealed());
  EXPECT_EQ(forms->open.k_codec, KvCodec::kF16);
  EXPECT_EQ(forms->open.layout.chunk_bytes, 2u * 64 * 64 * 2);
  EXPECT_EQ(forms->sealed.layout.chunk_bytes, 2u * (64 * 64 / 2 + 256));
  EXPECT_EQ(forms->rule.sink_pages, 1u);
}

TEST(KvForms, KAndVAreIndependent) {
  const auto forms =
      MakeKvForms(kGeometry, {.k_codec = KvCodec::kKivi4, .v_codec = KvCodec::kF32}, 0);
  ASSERT_TRUE(forms.ok());
  EXPECT_TRUE(forms->has_sealed());
  EXPECT_EQ(forms->open.k_codec, KvCodec::kF16);
  EXPECT_EQ(forms->open.v_codec, KvCodec::kF32);
  EXPECT_EQ(forms->sealed.v_codec, KvCodec::kF32);
  EXPECT_EQ(forms->sealed.layout.chunk_bytes, 64u * 64 / 2 + 256 + 64 * 64 * 4);
}

TEST(KvForms, WindowGroupsHaveNoSinkPages) {
  const KvFormOptions options = {
      .k_codec = KvCodec::kKivi4, .v_codec = KvCodec::kKivi4, .sink_pages = 1, .recent_pages = 2};
  const auto forms = MakeKvForms(kGeometry, options, 512);
  ASSERT_TRUE(forms.ok());
  EXPECT_EQ(forms->rule.sink_pages, 0u);
  EXPECT_EQ(forms->rule.recent_pages, 2u);
}

TEST(KvForms, TwoSinkPagesAreRefused) {
  EXPECT_FALSE(MakeKvForms(kGeometry, {.sink_pages = 2}, 0).ok());
}

}  // namespace
}  // namespace quire
