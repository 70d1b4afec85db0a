#include "plan/capacity.h"

#include <gtest/gtest.h>

#include <random>

#include "plan/kv_choice.h"
#include "plan/test_models.h"

namespace quire {
namespace {

// PLN-13: 512 tokens are 8 pages of 40,960 B = 327,680 B, or 32 pages of 10,240, counted 12,288 B,
// = 393,216 B. 67,108,864 / 327,680 = 204.8; / 393,216 = 170.67.
TEST(Capacity, UsersOf64MiB) {
  constexpr uint64_t kBudget = 64 << 20;
  EXPECT_EQ(UsersIn(TestShape(Stories(), "f16", 64), kBudget, 512, 0), 204u);
  EXPECT_EQ(UsersIn(TestShape(Stories(), "f16", 16), kBudget, 512, 0), 170u);
}

TEST(Capacity, QuestionsAreInversesOfEachOther) {
  std::mt19937 random(7);
  const auto draw = [&](uint32_t least, uint32_t most) {
    return std::uniform_int_distribution<uint32_t>(least, most)(random);
  };
  const KvModel models[] = {Stories(), Gemma27B(), Mistral7B(), DeepSeekV3()};
  for (int round = 0; round < 3000; ++round) {
    const KvModel& model = models[round % 4];
    const char* codecs[] = {"f16", "tile8", "tile4"};
    const KvShape shape = TestShape(model, codecs[draw(0, 2)], 16 * draw(1, 8));
    const uint32_t tokens = draw(1, 40'000), users = draw(1, 300);
    const uint32_t shared = SharedTokens(draw(0, tokens - 1), shape.page_size);
    const uint64_t bytes = BytesFor(shape, users, tokens, shared);
    EXPECT_EQ(UsersIn(shape, bytes, tokens, shared), users);
    EXPECT_EQ(UsersIn(shape, bytes - 1, tokens, shared), users - 1);
    const uint32_t context = ContextIn(shape, bytes, users, shared, 1 << 20);
    EXPECT_GE(context, tokens) << "round " << round;
    EXPECT_LE(BytesFor(shape, users, context, shared), bytes);
    if (context < 1 << 20) {
      EXPECT_GT(BytesFor(shape, users, context + 1, shared), bytes);
    }
    EXPECT_LT(ContextIn(shape, bytes - 1, users, shared, 1 << 20), std::max(tokens, context + 1));
  }
}

TEST(Capacity, MoreTokensNeverNeedLess) {
  for (const char* codec : {"f16", "tile8", "tile4"}) {
    const KvShape shape = TestShape(Gemma27B(), codec, 16);
    for (const uint32_t shared : {0u, 160u, 2048u}) {
      uint64_t before = 0;
      for (uint32_t tokens = shared + 1; tokens < 5000; ++tokens) {
        const uint64_t bytes = BytesFor(shape, 3, tokens, shared);
        ASSERT_GE(bytes, before) << codec << " " << tokens << ", shared " << shared;
        before = bytes;
      }
    }
  }
}

TEST(Capacity, NothingFitsInNothing) {
  const KvShape shape = TestShape(Stories(), "f16", 16);
  EXPECT_EQ(UsersIn(shape, 0, 1, 0), 0u);
  EXPECT_EQ(UsersIn(shape, 12'287, 1, 0), 0u);
  EXPECT_EQ(UsersIn(shape, 12'288, 1, 0), 1u);
  EXPECT_EQ(UsersIn(shape, 12'288 * 3, 65, 64), 0u);  // the prefix alone is 4 pages
  EXPECT_EQ(ContextIn(shape, 0, 1, 0, 512), 0u);
  EXPECT_EQ(ContextIn(shape, 12'288, 1, 0, 512), 16u);
  EXPECT_EQ(ContextIn(shape, 12'288 * 4, 1, 64, 512), 0u);
  EXPECT_EQ(ContextIn(shape, 12'288 * 5, 1, 64, 512), 80u);
  EXPECT_EQ(ContextIn(shape, UINT64_MAX - 1, 1, 0, 512), 512u);
  EXPECT_EQ(UsersIn(shape, UINT64_MAX, 1, 0), kMostPlannedUsers);
}

}  // namespace
}  // namespace quire
