#include "model/layer_groups.h"

#include <gtest/gtest.h>

namespace quire {
namespace {

ModelShape ShapeWith(const std::vector<int>& windows) {
  ModelShape shape;
  shape.num_layers = static_cast<int>(windows.size());
  shape.num_q_heads = 4;
  shape.num_kv_heads = 2;
  shape.head_dim_k = shape.head_dim_v = 16;
  for (const int window : windows) shape.layers.push_back({.window = window});
  return shape;
}

TEST(LayerGroups, LayersOfOneWindowFormAGroup) {
  const LayerGroups groups(ShapeWith({512, 512, 0, 512, 8, 0}));
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_EQ(groups[0].window, 0u);
  EXPECT_EQ(groups[0].layers, (std::vector<int>{2, 5}));
  EXPECT_EQ(groups[1].window, 8u);
  EXPECT_EQ(groups[1].layers, (std::vector<int>{4}));
  EXPECT_EQ(groups[2].window, 512u);
  EXPECT_EQ(groups[2].layers, (std::vector<int>{0, 1, 3}));
  for (size_t group = 0; group < groups.size(); ++group)
    for (uint32_t i = 0; i < groups[group].layers.size(); ++i) {
      EXPECT_EQ(groups.group_of_layer(groups[group].layers[i]), group);
      EXPECT_EQ(groups.index_in_group(groups[group].layers[i]), i);
    }
}

TEST(LayerGroups, AModelMayHaveWindowsOnly) {
  const LayerGroups groups(ShapeWith({16, 16}));
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].window, 16u);
}

TEST(LayerGroups, APageHoldsTheLayersOfItsGroup) {
  const ModelShape shape = ShapeWith({8, 0, 8, 8});
  const LayerGroups groups(shape);
  const auto forms =
      MakeGroupForms(shape, groups, 64, {.k_codec = KvCodec::kKivi4, .v_codec = KvCodec::kF16});
  ASSERT_TRUE(forms.ok());
  ASSERT_EQ(forms->size(), 2u);
  EXPECT_EQ((*forms)[0].open.layout.num_layers, 1u);
  EXPECT_EQ((*forms)[1].open.layout.num_layers, 3u);
  EXPECT_EQ((*forms)[1].sealed.layout.num_layers, 3u);
  EXPECT_EQ((*forms)[0].rule.sink_pages, 1u);
  EXPECT_EQ((*forms)[1].rule.sink_pages, 0u);
  // All groups together: what one page of all layers would have.
  const auto whole = MakeKvLayout({64, 4, 2, 16, 16}, KvCodec::kF16, KvCodec::kF16);
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ((*forms)[0].open.layout.page_bytes() + (*forms)[1].open.layout.page_bytes(),
            whole->page_bytes());
  EXPECT_FALSE(MakeGroupForms(shape, groups, 8, {}).ok());
}

}  // namespace
}  // namespace quire
