// The counts themselves are those of cache/kv_need.h, which has tests of its own.
#include "plan/kv_use.h"

#include <gtest/gtest.h>

#include "plan/kv_choice.h"
#include "plan/test_models.h"

namespace quire {
namespace {

TEST(KvUse, AConversationIsTheLeastBudgetInWhichItCanGrow) {
  for (const KvModel& model : {Stories(), Gemma27B(), DeepSeekV3()})
    for (const char* codec : {"f16", "f32", "tile8", "tile4"})
      for (const uint32_t page_size : {16u, 64u}) {
        const KvShape shape = TestShape(model, codec, page_size);
        for (const uint32_t tokens : {1u, 15u, 16u, 17u, 1000u, 1024u, 5000u})
          for (const uint32_t shared : {0u, 64u, 960u})
            if (shared < tokens) {
              EXPECT_EQ(ConversationUse(shape, tokens, shared).counted_bytes,
                        LeastBytes(shape, tokens, shared));
            }
      }
}

// PLN-10: 100 users x 17 tokens, pages of 16: 2 pages each, 10,240 B, counted 12,288.
TEST(KvUse, PagesAndTheirRoundingAreCounted) {
  const KvShape shape = TestShape(Stories(), "f16", 16);
  const KvUse all = TotalUse(SharedUse(shape, 0), ConversationUse(shape, 17), 100);
  EXPECT_EQ(all.groups.front().pages, (GroupPages{.open = 200}));
  EXPECT_EQ(all.page_bytes, 2'048'000u);
  EXPECT_EQ(all.counted_bytes, 2'457'600u);
}

// PLN-11: 32 users, 1,024 shared and 64 own tokens, pages of 16: 64 + 32 x 4 pages.
TEST(KvUse, ASharedPrefixIsCountedOnce) {
  const KvShape shape = TestShape(TestModel(30, 9, 3, 64, 8192), "f16", 16);
  const auto all = [&](uint32_t prefix) {
    const uint32_t shared = SharedTokens(prefix, 16);
    return TotalUse(SharedUse(shape, shared), ConversationUse(shape, 1024 + 64, shared), 32);
  };
  EXPECT_EQ(all(1024).groups.front().pages.open, 192u);
  EXPECT_EQ(all(0).groups.front().pages.open, 2176u);
  // 15 tokens more are no whole page: each has a copy.
  EXPECT_EQ(all(1024 + 15).groups.front().pages.open, 192u);
}

// PLN-16: pages may cross extents of 2 MiB, so the slack is what is left of the last.
TEST(KvUse, CommittedBytesAreWholeExtents) {
  // 30 layers x 3 heads x 128 values x 2 bytes x 16 tokens = 368,640 B, 90 units of 4 KiB
  const KvShape shape = TestShape(TestModel(30, 9, 3, 64, 8192), "f16", 16);
  ASSERT_EQ(shape.groups.front().open_page_bytes, 368'640u);
  const auto committed = [&](uint32_t pages) {
    return CommittedBytes(shape, ConversationUse(shape, pages * 16));
  };
  EXPECT_EQ(committed(1), 1u << 21);
  EXPECT_EQ(committed(5), 1u << 21);   // 1,843,200 B
  EXPECT_EQ(committed(6), 2u << 21);   // 2,211,840 B
  EXPECT_EQ(committed(17), 3u << 21);  // 6,266,880 B of 6,291,456
  // Each class has extents of its own: two open pages (the first stays so), a sealed one.
  const KvShape sealed = TestShape(TestModel(30, 9, 3, 64, 8192), "tile4", 64);
  EXPECT_EQ(CommittedBytes(sealed, ConversationUse(sealed, 129)), (2u << 21) + (1u << 21));
}

TEST(KvUse, SumsDoNotWrap) {
  const KvShape shape = TestShape(TestModel(500, 128, 128, 128, 1), "f32", 16);
  const KvUse one = ConversationUse(shape, kMostPlannedTokens);
  const KvUse all = TotalUse(SharedUse(shape, 0), one, kMostPlannedUsers);
  EXPECT_EQ(all.counted_bytes, UINT64_MAX);
  EXPECT_EQ(CommittedBytes(shape, all), UINT64_MAX);
}

}  // namespace
}  // namespace quire
