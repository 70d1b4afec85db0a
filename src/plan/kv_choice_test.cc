#include "plan/kv_choice.h"

#include <gtest/gtest.h>

#include <string>

#include "plan/test_models.h"

namespace quire {
namespace {

KvChoice Choice(std::string_view name, uint32_t page_size = 64) {
  KvChoice choice{.page_size = page_size};
  const Status status = ParseKvChoice(name, &choice);
  EXPECT_TRUE(status.ok()) << status.message();
  return choice;
}

TEST(KvChoice, NamesGoThereAndBack) {
  for (const KvFormat& format : KvFormats()) EXPECT_EQ(Choice(format.name).name(), format.name);
  EXPECT_EQ(Choice("k=int8,v=tile4").name(), "k=int8,v=tile4");
  EXPECT_EQ(Choice("v=tile4,k=int8").name(), "k=int8,v=tile4");
  EXPECT_EQ(Choice("k=f16,v=f16").name(), "f16");
  EXPECT_TRUE(Choice("kivi4").runs());
  EXPECT_FALSE(Choice("tile4").runs());
  EXPECT_FALSE(Choice("k=f16,v=f32").runs());
}

TEST(KvChoice, OtherTextsAreRefusedAndChangeNothing) {
  for (const char* text : {"", "q8", "k=f16", "v=f16", "k=f16,", "k=f16,k=f16", "k=f16,v=", "k=,v=",
                           "f16,f16", "k=f16,v=f16,k=f16", "k=f16;v=f16", "="}) {
    KvChoice choice = Choice("kivi4");
    EXPECT_EQ(ParseKvChoice(text, &choice).code(), StatusCode::kInvalidArgument) << text;
    EXPECT_EQ(choice.name(), "kivi4") << text;
  }
}

// The two ways to the bytes of a page, where both can be gone.
TEST(KvChoice, PlannedShapesAreThoseOfTheEngineForWhatRuns) {
  for (const KvModel& model : {Llama70B(), Gemma27B(), Mistral7B(), Stories(),
                               TestModel(3, 5, 5, 80, 100), TestModel(1, 1, 1, 4, 100)})
    for (const char* codec : {"f32", "f16", "kivi4"})
      for (const uint32_t page_size : {16u, 48u, 64u, 128u}) {
        for (const uint32_t recent : {0u, 3u}) {
          KvChoice choice = Choice(codec, page_size);
          choice.recent_pages = recent;
          const auto shape = ShapeOf(model, choice);
          ASSERT_TRUE(shape.ok()) << shape.status().message();
          ASSERT_EQ(shape->page_size, page_size);
          for (size_t g = 0; g < model.groups.size(); ++g) {
            const auto planned = PlannedGroupShape(model.groups[g], choice);
            ASSERT_TRUE(planned.ok());
            EXPECT_EQ(planned->window, shape->groups[g].window);
            EXPECT_EQ(planned->open_page_bytes, shape->groups[g].open_page_bytes) << codec;
            EXPECT_EQ(planned->sealed_page_bytes, shape->groups[g].sealed_page_bytes) << codec;
            EXPECT_EQ(planned->sink_pages, shape->groups[g].sink_pages) << codec;
            EXPECT_EQ(planned->recent_pages, shape->groups[g].recent_pages) << codec;
          }
        }
      }
}

TEST(KvChoice, ALatentHasOneSideAndSomeCodecs) {
  // 61 layers x 64 tokens x (512 + 64) values x 2 bytes
  EXPECT_EQ(ShapeOf(DeepSeekV3(), Choice("f16"))->groups.front().open_page_bytes, 4'497'408u);
  const auto tile4 = ShapeOf(DeepSeekV3(), Choice("tile4"));
  ASSERT_TRUE(tile4.ok());
  // 418 bytes a token and layer (notes of the codecs): 61 x 64 x 418
  EXPECT_EQ(tile4->groups.front().sealed_page_bytes, 1'631'872u);
  EXPECT_EQ(tile4->groups.front().open_page_bytes, 4'497'408u);
  for (const char* name : {"kivi4", "int4", "k=f16,v=int8"})
    EXPECT_EQ(ShapeOf(DeepSeekV3(), Choice(name)).status().code(), StatusCode::kInvalidArgument)
        << name;
}

TEST(KvChoice, WhatCannotBeAPageIsRefused) {
  for (const uint32_t page_size : {0u, 8u, 17u, 4112u, UINT32_MAX})
    for (const char* codec : {"f16", "tile4"})
      EXPECT_EQ(ShapeOf(Stories(), Choice(codec, page_size)).status().code(),
                StatusCode::kInvalidArgument)
          << page_size;
  KvChoice sinks = Choice("tile4");
  sinks.sink_pages = 2;
  EXPECT_FALSE(ShapeOf(Stories(), sinks).ok());
  // A page of more than 2 GiB: 1,000 layers x 1,000 heads x 256 values x 2 bytes x 64 tokens.
  for (const char* codec : {"f16", "tile4"})
    EXPECT_FALSE(ShapeOf(TestModel(1000, 1000, 1000, 128, 1), Choice(codec)).ok()) << codec;
  EXPECT_FALSE(
      ShapeOf(TestModel(UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX, 1), Choice("int8")).ok());
  KvModel none = Stories();
  none.groups.clear();
  EXPECT_FALSE(ShapeOf(none, Choice("f16")).ok());
}

TEST(KvChoice, WindowsHaveNoSinkPages) {
  const auto shape = ShapeOf(Gemma27B(), Choice("tile4"));
  ASSERT_TRUE(shape.ok());
  EXPECT_EQ(shape->groups[0].sink_pages, 1u);
  EXPECT_EQ(shape->groups[1].sink_pages, 0u);
}

}  // namespace
}  // namespace quire
