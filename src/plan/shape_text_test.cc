#include "plan/shape_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace quire {
namespace {

using testing::HasSubstr;

KvModel Read(std::string_view text) {
  const auto model = ReadShapeText(text);
  EXPECT_TRUE(model.ok()) << model.status().message();
  return model.ok() ? *model : KvModel();
}

std::string Error(std::string_view text) {
  const auto model = ReadShapeText(text);
  EXPECT_FALSE(model.ok()) << text;
  if (model.ok()) return "";
  EXPECT_EQ(model.status().code(), StatusCode::kInvalidArgument) << text;
  return model.status().message();
}

TEST(ShapeText, ThreeNumbersAreAModel) {
  const KvModel model = Read("layers=80,kv_heads=8,head_dim=128");
  EXPECT_EQ(model.architecture, "shape");
  EXPECT_EQ(model.source, "--shape");
  EXPECT_FALSE(model.runs);
  EXPECT_EQ(model.num_layers, 80u);
  EXPECT_EQ(model.num_q_heads, 8u);
  EXPECT_EQ(model.q_head_dim, 128u);
  EXPECT_EQ(model.context_length, 0u);
  EXPECT_FALSE(model.num_params.has_value());
  ASSERT_EQ(model.groups.size(), 1u);
  EXPECT_EQ(model.groups[0].num_layers, 80u);
  EXPECT_EQ(model.groups[0].window, 0u);
  EXPECT_EQ(model.groups[0].num_kv_heads, 8u);
  EXPECT_EQ(model.groups[0].head_dim_k, 128u);
  EXPECT_EQ(model.groups[0].head_dim_v, 128u);
  EXPECT_FALSE(model.groups[0].is_latent());
}

TEST(ShapeText, EveryKeyIsHeeded) {
  const KvModel model = Read(
      "params=70.6B,context=128k,layers=62,kv_heads=16,head_dim=128,v_head_dim=64,q_heads=32,"
      "window=1024,window_layers=52,active_params=37B");
  EXPECT_EQ(model.num_params, 70'600'000'000u);
  EXPECT_EQ(model.num_active_params, 37'000'000'000u);
  EXPECT_EQ(model.context_length, 128'000u);
  EXPECT_EQ(model.num_q_heads, 32u);
  EXPECT_EQ(model.v_head_dim, 64u);
  ASSERT_EQ(model.groups.size(), 2u);
  EXPECT_EQ(model.groups[0].num_layers, 10u);
  EXPECT_EQ(model.groups[0].window, 0u);
  EXPECT_EQ(model.groups[1].num_layers, 52u);
  EXPECT_EQ(model.groups[1].window, 1024u);
  EXPECT_EQ(model.groups[1].head_dim_v, 64u);
}

TEST(ShapeText, AWindowIsOfEveryLayerUnlessSaidOtherwise) {
  const KvModel model = Read("layers=32,kv_heads=8,head_dim=128,window=4096");
  ASSERT_EQ(model.groups.size(), 1u);
  EXPECT_EQ(model.groups[0].window, 4096u);
  EXPECT_EQ(model.groups[0].num_layers, 32u);
}

TEST(ShapeText, ALatentNeedsItsTwoNumbers) {
  const KvModel model = Read("layers=61,kv_lora_rank=512,rope_dim=64,q_heads=128,head_dim=192");
  ASSERT_EQ(model.groups.size(), 1u);
  EXPECT_TRUE(model.groups[0].is_latent());
  EXPECT_EQ(model.groups[0].num_kv_heads, 1u);
  EXPECT_EQ(model.groups[0].head_dim_k, 512u);
  EXPECT_EQ(model.groups[0].head_dim_v, 0u);
  EXPECT_EQ(model.groups[0].latent_rope_dim, 64u);
  EXPECT_EQ(model.num_q_heads, 128u);
  EXPECT_EQ(model.q_head_dim, 192u);
  EXPECT_EQ(model.v_head_dim, 0u);  // not said
  EXPECT_THAT(Error("layers=61,kv_lora_rank=512"), HasSubstr("says nothing of rope_dim"));
  EXPECT_THAT(Error("layers=61,rope_dim=64"), HasSubstr("says nothing of kv_lora_rank"));
  EXPECT_THAT(Error("layers=61,kv_lora_rank=512,rope_dim=64,kv_heads=8"), HasSubstr("kv_heads"));
}

TEST(ShapeText, ErrorsNameTheKeyAndListThoseKnown) {
  EXPECT_THAT(Error(""), HasSubstr("is empty"));
  EXPECT_THAT(Error("layers=80,kv_heads=8"), HasSubstr("says nothing of head_dim"));
  EXPECT_THAT(Error("kv_heads=8,head_dim=128"), HasSubstr("says nothing of layers"));
  EXPECT_THAT(Error("layers=80,heads=8"), HasSubstr("'heads'"));
  EXPECT_THAT(Error("layers=80,heads=8"), HasSubstr("kv_lora_rank"));  // of the list
  EXPECT_THAT(Error("layers"), HasSubstr("'layers', which is no key=value"));
  EXPECT_THAT(Error("layers=80,,kv_heads=8"), HasSubstr("'', which is no key=value"));
  EXPECT_THAT(Error("layers=80,kv_heads=8,head_dim=128,"), HasSubstr("no key=value"));
  EXPECT_THAT(Error("layers=80,layers=80"), HasSubstr("layers twice"));
  EXPECT_THAT(Error("layers=80,kv_heads=8,head_dim=128,window_layers=3"), HasSubstr("no window"));
  EXPECT_THAT(Error("layers=8,kv_heads=8,head_dim=128,window=9,window_layers=9"),
              HasSubstr("window_layers=9 of layers=8"));
  EXPECT_THAT(Error("layers=8,kv_heads=8,head_dim=128,q_heads=12"), HasSubstr("q_heads=12"));
  EXPECT_THAT(Error("layers=8,kv_heads=8,head_dim=128,params=7B,active_params=8B"),
              HasSubstr("more active_params"));
}

TEST(ShapeText, ValuesOutOfRangeAreNamed) {
  for (const char* value : {"0", "-1", "1.5", "x", "", "1025", "1e99", "nan", "80 layers", "0x50"})
    EXPECT_THAT(Error(std::string("layers=") + value + ",kv_heads=8,head_dim=128"),
                HasSubstr("layers is '"))
        << value;
  EXPECT_EQ(Read("layers=1024,kv_heads=8,head_dim=128").num_layers, 1024u);
  EXPECT_THAT(Error("layers=\x1b[2J"), HasSubstr("\\x1B"));
  EXPECT_FALSE(ReadShapeText("layers=1,kv_heads=65536,head_dim=65536").ok());
}

}  // namespace
}  // namespace quire
