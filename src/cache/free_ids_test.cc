#include "cache/free_ids.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace quire {
namespace {

TEST(FreeIds, HandsOutAllIdsInRisingOrderAndNoOther) {
  // Sizes around those where a word or a level begins.
  for (uint32_t num_ids : {0u, 1u, 63u, 64u, 65u, 4095u, 4096u, 4097u, 262145u}) {
    FreeIds ids(num_ids);
    for (uint32_t id = 0; id < num_ids; ++id) {
      ASSERT_TRUE(ids.is_free(id));
      ASSERT_EQ(ids.TakeLowest(), id) << "of " << num_ids;
      ASSERT_FALSE(ids.is_free(id));
    }
    EXPECT_EQ(ids.num_free(), 0u);
  }
}

TEST(FreeIds, TheLowestOfTheIdsGivenBackComesFirst) {
  FreeIds ids(10000);
  for (int i = 0; i < 10000; ++i) (void)ids.TakeLowest();
  for (uint32_t id : {9999u, 64u, 4096u, 63u}) ids.GiveBack(id);
  EXPECT_EQ(ids.num_free(), 4u);
  for (uint32_t id : {63u, 64u, 4096u, 9999u}) EXPECT_EQ(ids.TakeLowest(), id);
}

TEST(FreeIds, AgreesWithASetUnderRandomOperations) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    const uint32_t num_ids = 1 + random() % 5000;
    FreeIds ids(num_ids);
    std::set<uint32_t> free;
    std::vector<uint32_t> taken;
    for (uint32_t id = 0; id < num_ids; ++id) free.insert(id);
    for (int step = 0; step < 20000; ++step) {
      // Phases that fill and phases that empty.
      const bool take = random() % 4 < ((step / 5000) % 2 == 0 ? 3u : 1u);
      if (take && !free.empty()) {
        ASSERT_EQ(ids.TakeLowest(), *free.begin()) << "seed " << seed << " step " << step;
        taken.push_back(*free.begin());
        free.erase(free.begin());
      } else if (!take && !taken.empty()) {
        std::swap(taken[random() % taken.size()], taken.back());
        ids.GiveBack(taken.back());
        free.insert(taken.back());
        taken.pop_back();
      }
      ASSERT_EQ(ids.num_free(), free.size()) << "seed " << seed << " step " << step;
    }
    for (uint32_t id = 0; id < num_ids; ++id) ASSERT_EQ(ids.is_free(id), free.contains(id));
  }
}

TEST(FreeIdsDeathTest, AnIdThatIsFreeCannotBeGivenBack) {
  FreeIds ids(3);
  EXPECT_EQ(ids.TakeLowest(), 0u);
  EXPECT_DEATH(ids.GiveBack(1), "is_free");
}

}  // namespace
}  // namespace quire
