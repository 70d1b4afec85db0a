#include "cache/page_pool.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <utility>

#include "base/allocation_count.h"

namespace quire {
namespace {

constexpr size_t kPage = 4096;

std::unique_ptr<PagePool> Pool(uint32_t num_pages, size_t page_bytes = kPage,
                               bool fill_with_nan = true) {
  auto pool = PagePool::Create({.page_bytes = page_bytes,
                                .budget_bytes = num_pages * PageStride(page_bytes),
                                .fill_with_nan = fill_with_nan});
  EXPECT_TRUE(pool.ok()) << pool.status().message();
  return std::move(pool).value();
}

TEST(PagePool, TheLowestFreeIdComesFirst) {
  auto pool = Pool(8);
  std::vector<PageRef> pages;
  ASSERT_TRUE(pool->Allocate(8, &pages).ok());
  for (PageId id = 0; id < 8; ++id) EXPECT_EQ(pages[id].id(), id);
  pages[6].Reset();
  pages[2].Reset();
  std::vector<PageRef> again;
  ASSERT_TRUE(pool->Allocate(2, &again).ok());
  EXPECT_EQ(again[0].id(), 2u);
  EXPECT_EQ(again[1].id(), 6u);
}

TEST(PagePool, FailedAllocateTakesNothingAndSaysWhatToChange) {
  auto pool = Pool(2048, 100, false);
  std::vector<PageRef> pages;
  ASSERT_TRUE(pool->Allocate(2036, &pages).ok());
  const Status status = pool->Allocate(37, &pages);
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(),
            "need 37 pages, 12 of 2048 free: shorten the text or raise --kv-memory");
  EXPECT_EQ(pages.size(), 2036u);
  EXPECT_EQ(pool->num_free(), 12u);
  EXPECT_TRUE(pool->CheckInvariants().ok());
  EXPECT_TRUE(pool->Allocate(12, &pages).ok());
  EXPECT_TRUE(pool->Allocate(0, &pages).ok());
  EXPECT_FALSE(pool->Allocate(1, &pages).ok());
  EXPECT_FALSE(pool->Allocate(~0u, &pages).ok());
}

TEST(PagePool, AHoldIsGivenBackOnceHoweverItMoves) {
  auto pool = Pool(3);
  std::vector<PageRef> pages;
  ASSERT_TRUE(pool->Allocate(2, &pages).ok());
  PageRef a = std::move(pages[0]);
  EXPECT_FALSE(pages[0]);
  PageRef b = std::move(pages[1]);
  b = std::move(a);  // gives page 1 back
  EXPECT_FALSE(a);
  EXPECT_EQ(b.id(), 0u);
  EXPECT_EQ(pool->num_holds(1), 0u);
  PageRef& same = b;
  b = std::move(same);
  EXPECT_EQ(pool->num_holds(0), 1u);
  a.Reset();
  b.Reset();
  b.Reset();
  EXPECT_EQ(pool->num_held(), 0u);
  EXPECT_TRUE(pool->CheckInvariants().ok());
}

TEST(PagePool, ASharedPageIsFreeOnlyAfterItsLastHold) {
  auto pool = Pool(1);
  std::vector<PageRef> pages;
  ASSERT_TRUE(pool->Allocate(1, &pages).ok());
  EXPECT_FALSE(pages[0].is_shared());
  PageRef second = pages[0].Share();
  EXPECT_TRUE(pages[0].is_shared());
  EXPECT_EQ(second.address(), pages[0].address());
  EXPECT_EQ(pool->num_held(), 1u);  // a shared page counts once
  pages.clear();
  EXPECT_FALSE(second.is_shared());
  EXPECT_EQ(pool->num_free(), 0u);
  second.Reset();
  EXPECT_EQ(pool->num_free(), 1u);
}

TEST(PagePool, TheBudgetCountsPageBytesRoundedUpTo4KiB) {
  auto pool = PagePool::Create({.page_bytes = 10240, .budget_bytes = 200 * 12288 + 5000});
  ASSERT_TRUE(pool.ok());
  PagePool& p = **pool;
  EXPECT_EQ(p.num_pages(), 200u);
  std::vector<PageRef> pages;
  ASSERT_TRUE(p.Allocate(200, &pages).ok());
  EXPECT_EQ(p.held_bytes(), 2457600u);
  EXPECT_EQ(p.free_bytes(), 5000u);
  EXPECT_EQ(p.held_bytes() + p.free_bytes(), p.budget_bytes());
}

TEST(PagePool, FreedAndFreshPagesAreFilledWithNanWhenAsked) {
  auto pool = Pool(2, 3 * sizeof(float));
  std::vector<PageRef> pages;
  ASSERT_TRUE(pool->Allocate(1, &pages).ok());
  std::byte* address = pages[0].address();
  float values[3];
  std::memcpy(values, address, sizeof values);
  for (float value : values) EXPECT_TRUE(std::isnan(value)) << "handed out";
  std::memset(address, 0, sizeof values);
  pages.clear();
  std::memcpy(values, address, sizeof values);
  for (float value : values) EXPECT_TRUE(std::isnan(value)) << "given back";
}

TEST(PagePool, MemoryOfFreePagesGoesBackInWholeExtents) {
  constexpr size_t kMiB = size_t{1} << 20;
  auto pool = Pool(64, kMiB);
  std::vector<PageRef> pages;
  ASSERT_TRUE(pool->Allocate(64, &pages).ok());
  EXPECT_EQ(pool->committed_bytes(), 64 * kMiB);
  EXPECT_EQ(pool->slack_bytes(), 0u);
  pages.resize(3);
  EXPECT_EQ(pool->committed_bytes(), 64 * kMiB);
  EXPECT_EQ(pool->slack_bytes(), 61 * kMiB);
  EXPECT_EQ(pool->ReleaseIdleMemory(), 60 * kMiB);
  EXPECT_EQ(pool->committed_bytes(), 4 * kMiB);
  EXPECT_EQ(pool->slack_bytes(), kMiB);
  EXPECT_TRUE(pool->CheckInvariants().ok());
}

TEST(PagePool, HandOutAndGiveBackAllocateNothing) {
  auto pool = Pool(1000, kPage, false);
  std::vector<PageRef> pages;
  pages.reserve(2000);
  const uint64_t before = AllocationCount();
  for (int round = 0; round < 3; ++round) {
    const bool ok = pool->Allocate(1000, &pages).ok();
    ASSERT_TRUE(ok);
    for (int i = 0; i < 1000; ++i) pages.push_back(pages[i].Share());
    pages.clear();
    pool->ReleaseIdleMemory();
  }
  EXPECT_EQ(AllocationCount(), before);
}

// [cache.pool.1] to [cache.pool.4] against a plain map.
TEST(PagePool, AgreesWithAMapUnderRandomOperations) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    const uint32_t num_pages = 1 + random() % 12;
    auto pool = Pool(num_pages, 1 + random() % 9000);
    std::map<PageId, uint32_t> holds;
    std::vector<PageRef> refs;
    for (int step = 0; step < 1500; ++step) {
      const uint32_t pick = refs.empty() ? 0 : random() % refs.size();
      switch (random() % 5) {
        case 0: {
          const uint32_t num_wanted = random() % 5;
          const size_t num_refs = refs.size();
          const bool fits = num_wanted <= num_pages - holds.size();
          ASSERT_EQ(pool->Allocate(num_wanted, &refs).ok(), fits);
          ASSERT_EQ(refs.size(), num_refs + (fits ? num_wanted : 0));
          for (size_t i = num_refs; i < refs.size(); ++i) {
            PageId lowest = 0;
            while (holds.contains(lowest)) ++lowest;
            ASSERT_EQ(refs[i].id(), lowest);
            holds[lowest] = 1;
          }
          break;
        }
        case 1:
          if (refs.empty() || refs.size() > 40) break;
          ++holds[refs[pick].id()];
          refs.push_back(refs[pick].Share());
          break;
        case 2:
          pool->ReleaseIdleMemory();
          break;
        default:
          if (refs.empty()) break;
          if (--holds[refs[pick].id()] == 0) holds.erase(refs[pick].id());
          std::swap(refs[pick], refs.back());
          refs.pop_back();
      }
      const Status status = pool->CheckInvariants();
      ASSERT_TRUE(status.ok()) << status.message() << " seed " << seed << " step " << step;
      ASSERT_EQ(pool->num_held(), holds.size()) << "seed " << seed << " step " << step;
      ASSERT_EQ(pool->held_bytes() + pool->free_bytes(), pool->budget_bytes());
      for (PageId id = 0; id < num_pages; ++id)
        ASSERT_EQ(pool->num_holds(id), holds.contains(id) ? holds[id] : 0)
            << "page " << id << " seed " << seed << " step " << step;
    }
  }
}

TEST(PagePoolDeathTest, AHoldMustNotOutliveItsPool) {
  EXPECT_DEATH(
      {
        PageRef outliving;
        auto pool = Pool(1);
        std::vector<PageRef> pages;
        if (pool->Allocate(1, &pages).ok()) outliving = std::move(pages[0]);
        pool.reset();
      },
      "num_refs_ == 0");
}

}  // namespace
}  // namespace quire
