// CAC-04, CAC-08, CAC-09, CAC-11 and what cache/page_pool.h promises.
#include "cache/page_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <utility>

#include "base/allocation_count.h"

namespace quire {
namespace {

constexpr size_t kPage = 4096;

// Class 0: pages of one unit, class 1: none, class 2: of three.
std::unique_ptr<PagePool> Pool(uint32_t num_units, bool fill_with_nan = true) {
  auto pool = PagePool::Create({.page_bytes = {kPage, 0, 3 * kPage - 100},
                                .budget_bytes = num_units * kPage,
                                .fill_with_nan = fill_with_nan});
  EXPECT_TRUE(pool.ok()) << pool.status().message();
  return std::move(pool).value();
}

std::vector<PageRef> TakeAll(PagePool& pool, PageClass c) {
  std::vector<PageRef> pages;
  while (pool.free_bytes() >= pool.stride(c)) pages.push_back(pool.Take(c));
  return pages;
}

void ExpectSound(const PagePool& pool) {
  const Status status = pool.CheckInvariants();
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(PagePool, TheLowestFreeIdComesFirst) {
  auto pool = Pool(8);
  std::vector<PageRef> pages = TakeAll(*pool, 0);
  ASSERT_EQ(pages.size(), 8u);
  for (PageId id = 0; id < 8; ++id) EXPECT_EQ(pages[id].id(), id);
  pages[6].Reset();
  pages[2].Reset();
  EXPECT_EQ((pages[2] = pool->Take(0)).id(), 2u);
  EXPECT_EQ((pages[6] = pool->Take(0)).id(), 6u);
}

TEST(PagePool, ClassesOfAnySizeTakeFromOneBudget) {
  auto pool = Pool(10);
  EXPECT_EQ(pool->stride(0), kPage);
  EXPECT_EQ(pool->stride(2), 3 * kPage);  // rounded up to 4 KiB
  EXPECT_FALSE(pool->has_class(1));
  EXPECT_EQ(pool->num_pages(0), 10u);
  EXPECT_EQ(pool->num_pages(2), 3u);
  std::vector<PageRef> large = TakeAll(*pool, 2);
  EXPECT_EQ(large.size(), 3u);
  EXPECT_EQ(pool->free_bytes(), kPage);
  std::vector<PageRef> small = TakeAll(*pool, 0);
  EXPECT_EQ(small.size(), 1u);
  EXPECT_EQ(pool->held_bytes(), pool->budget_bytes());
  large.pop_back();
  EXPECT_EQ(TakeAll(*pool, 0).size(), 3u);  // what one class leaves, another takes
  ExpectSound(*pool);
}

TEST(PagePool, AUseIsGivenBackOnceHoweverItMoves) {
  auto pool = Pool(3);
  PageRef first = pool->Take(0), second = pool->Take(0);
  PageRef a = std::move(first);
  EXPECT_FALSE(first);
  PageRef b = std::move(second);
  b = std::move(a);  // gives page 1 back
  EXPECT_FALSE(a);
  EXPECT_EQ(b.id(), 0u);
  EXPECT_EQ(pool->num_uses(0, 1), 0u);
  PageRef& same = b;
  b = std::move(same);
  EXPECT_EQ(pool->num_uses(0, 0), 1u);
  a.Reset();
  b.Reset();
  b.Reset();
  EXPECT_EQ(pool->held_bytes(), 0u);
  ExpectSound(*pool);
}

// CAC-08.
TEST(PagePool, ASharedPageCountsOnceAndIsFreeAfterItsLastUse) {
  auto pool = Pool(4);
  PageRef page = pool->Take(2);
  EXPECT_FALSE(page.is_shared());
  PageRef second = page.Share();
  EXPECT_TRUE(page.is_shared());
  EXPECT_EQ(second.address(), page.address());
  PageRef third = pool->Use(2, page.id());
  EXPECT_EQ(pool->held_bytes(), 3 * kPage);
  EXPECT_EQ(pool->num_held(2), 1u);
  EXPECT_EQ(pool->num_uses(2, 0), 3u);
  ExpectSound(*pool);
  page.Reset();
  second.Reset();
  EXPECT_FALSE(third.is_shared());
  EXPECT_EQ(pool->held_bytes(), 3 * kPage);
  third.Reset();
  EXPECT_EQ(pool->free_bytes(), pool->budget_bytes());
}

TEST(PagePool, AKeptPageIsCachedWhenNobodyUsesIt) {
  auto pool = Pool(4);
  PageRef page = pool->Take(0);
  pool->Keep(0, page.id());
  EXPECT_TRUE(page.is_shared()) << "a node holds it too: not to be written";
  EXPECT_TRUE(pool->is_kept(0, 0));
  EXPECT_EQ(pool->held_bytes(), kPage);
  EXPECT_EQ(pool->cached_bytes(), 0u);
  page.Reset();
  EXPECT_EQ(pool->held_bytes(), 0u);
  EXPECT_EQ(pool->cached_bytes(), kPage);
  EXPECT_EQ(pool->num_cached(0), 1u);
  EXPECT_EQ(pool->free_bytes(), 3 * kPage);
  EXPECT_NE(pool->Take(0).id(), 0u);
  page = pool->Use(0, 0);
  EXPECT_EQ(pool->cached_bytes(), 0u);
  pool->Keep(0, 0);  // a second node
  page.Reset();
  pool->Unkeep(0, 0);
  EXPECT_EQ(pool->cached_bytes(), kPage);
  ExpectSound(*pool);
  pool->Unkeep(0, 0);
  EXPECT_EQ(pool->free_bytes(), 4 * kPage);
  ExpectSound(*pool);
}

TEST(PagePool, PinsCountOnlyWhileThePageIsCached) {
  auto pool = Pool(4);
  PageRef page = pool->Take(2);
  pool->Keep(2, 0);
  pool->Pin(2, 0);
  pool->Pin(2, 0);
  EXPECT_TRUE(pool->is_pinned(2, 0));
  EXPECT_EQ(pool->pinned_bytes(), 0u);  // in use
  page.Reset();
  EXPECT_EQ(pool->pinned_bytes(), 3 * kPage);
  EXPECT_EQ(pool->evictable_bytes(), 0u);
  ExpectSound(*pool);
  pool->Unpin(2, 0);
  EXPECT_EQ(pool->evictable_bytes(), 0u);  // pins nest
  page = pool->Use(2, 0);
  EXPECT_EQ(pool->pinned_bytes(), 0u);
  page.Reset();
  pool->Unpin(2, 0);
  EXPECT_EQ(pool->pinned_bytes(), 0u);
  EXPECT_EQ(pool->evictable_bytes(), 3 * kPage);
  pool->Unkeep(2, 0);
  ExpectSound(*pool);
}

struct Observer final : UnusedPageObserver {
  void OnUnused(PageClass page_class, PageId id) override { seen.emplace_back(page_class, id); }
  std::vector<std::pair<int, PageId>> seen;
};

TEST(PagePool, TheObserverHearsOfKeptPagesThatLoseTheirLastUse) {
  auto pool = Pool(8);
  Observer observer;
  pool->SetObserver(&observer);
  PageRef kept = pool->Take(0), other = pool->Take(0), large = pool->Take(2);
  pool->Keep(0, kept.id());
  pool->Keep(2, large.id());
  PageRef second = kept.Share();
  kept.Reset();
  other.Reset();  // nobody keeps it
  EXPECT_TRUE(observer.seen.empty());
  second.Reset();
  large.Reset();
  EXPECT_EQ(observer.seen, (std::vector<std::pair<int, PageId>>{{0, 0}, {2, 0}}));
  pool->SetObserver(nullptr);
  pool->Use(0, 0).Reset();
  EXPECT_EQ(observer.seen.size(), 2u);
  pool->Unkeep(0, 0);
  pool->Unkeep(2, 0);
}

TEST(PagePool, FreedAndFreshPagesAreFilledWithNanWhenAsked) {
  auto pool = Pool(3);
  PageRef page = pool->Take(2);
  std::byte* address = page.address();
  const auto all_nan = [&] {
    for (size_t at = 0; at < 3 * kPage; at += sizeof(float)) {
      float value;
      std::memcpy(&value, address + at, sizeof value);
      if (!std::isnan(value)) return false;
    }
    return true;
  };
  EXPECT_TRUE(all_nan()) << "handed out";
  std::memset(address, 0, 3 * kPage);
  pool->Keep(2, 0);
  page.Reset();
  EXPECT_FALSE(all_nan()) << "it is cached";
  pool->Unkeep(2, 0);
  EXPECT_TRUE(all_nan()) << "given back";
}

// CAC-11.
TEST(PagePool, ExtentsWithoutAPageGoBackAfterTheIdleTime) {
  constexpr size_t kMiB = size_t{1} << 20;
  auto created = PagePool::Create({.page_bytes = {kMiB, kMiB / 2}, .budget_bytes = 64 * kMiB});
  ASSERT_TRUE(created.ok());
  PagePool& pool = **created;
  EXPECT_EQ(pool.committed_bytes(), 0u);
  std::vector<PageRef> pages;
  for (int i = 0; i < 32; ++i) pages.push_back(pool.Take(0));
  for (int i = 0; i < 64; ++i) pages.push_back(pool.Take(1));
  EXPECT_EQ(pool.committed_bytes(), 64 * kMiB);
  EXPECT_EQ(pool.slack_bytes(), 0u);
  pool.Keep(1, 63);
  pages.resize(3);  // three of class 0, and one cached page at the end of class 1
  EXPECT_EQ(pool.slack_bytes(), 64 * kMiB - 3 * kMiB - kMiB / 2);
  EXPECT_EQ(pool.ReleaseIdle(100, 30), 0u);  // idle from here on
  EXPECT_EQ(pool.ReleaseIdle(129, 30), 0u);
  EXPECT_EQ(pool.ReleaseIdle(130, 30), 58 * kMiB);
  EXPECT_EQ(pool.committed_bytes(), 6 * kMiB);
  EXPECT_EQ(pool.slack_bytes(), 6 * kMiB - 3 * kMiB - kMiB / 2);
  ExpectSound(pool);
  pool.Unkeep(1, 63);
  pages.clear();
  EXPECT_EQ(pool.ReleaseIdle(200, 0), 6 * kMiB);
  EXPECT_EQ(pool.committed_bytes(), 0u);
}

// CAC-09. In debug builds the test stops with the page; in release builds the page is set aside.
TEST(PagePoolDeathTest, APageReleasedTwiceIsSetAsideAndCounted) {
  auto pool = Pool(4);
  PageRef first = pool->Take(0), second = pool->Take(0);
  pool->Keep(0, 1);
  second.Reset();
  pool->Unkeep(0, 1);
#ifndef NDEBUG
  EXPECT_DEATH(pool->Unkeep(0, 1), "bug: page 1 of class 0 is no longer kept, and was not");
#else
  pool->Unkeep(0, 1);
  EXPECT_EQ(pool->num_failures(), 1u);
  EXPECT_EQ(pool->held_bytes(), 2 * kPage);  // the lost one counts: the sum stays right
  EXPECT_EQ(pool->free_bytes(), 2 * kPage);
  ExpectSound(*pool);
  PageRef third = pool->Take(0);
  EXPECT_EQ(third.id(), 2u) << "nobody is handed the page again";
  pool->Unpin(0, 2);
  EXPECT_EQ(pool->num_failures(), 2u);
  pool->Unkeep(0, 1);
  EXPECT_EQ(pool->num_failures(), 3u);
  EXPECT_EQ(pool->free_bytes(), kPage) << "it is lost once only";
  ExpectSound(*pool);

  // A PageRef's bytes, copied: what a memory bug would do.
  alignas(PageRef) std::byte copy[sizeof(PageRef)];
  std::memcpy(copy, static_cast<const void*>(&third), sizeof copy);
  third.Reset();
  reinterpret_cast<PageRef*>(copy)->Reset();
  EXPECT_EQ(pool->num_failures(), 4u);
  EXPECT_EQ(pool->num_uses(0, 2), 0u) << "no count goes below 0";
  EXPECT_EQ(pool->Take(0).id(), 3u);
  ExpectSound(*pool);
#endif
}

TEST(PagePool, CreateRefusesWhatCannotBe) {
  EXPECT_EQ(PagePool::Create({.page_bytes = {kPage}, .budget_bytes = 100}).status().code(),
            StatusCode::kInvalidArgument);
}

TEST(PagePool, HandingOutAndGivingBackAllocatesNothing) {
  auto pool = Pool(1000, false);
  std::vector<PageRef> pages;
  pages.reserve(2000);
  const uint64_t before = AllocationCount();
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 1000; ++i) pages.push_back(pool->Take(0));
    for (int i = 0; i < 1000; ++i) pages.push_back(pages[static_cast<size_t>(i)].Share());
    for (PageId id = 0; id < 1000; ++id) {
      pool->Keep(0, id);
      pool->Pin(0, id);
    }
    pages.clear();
    for (PageId id = 0; id < 1000; ++id) {
      pool->Unpin(0, id);
      pool->Unkeep(0, id);
    }
    pool->ReleaseIdle(static_cast<uint32_t>(round), 1);
  }
  EXPECT_EQ(AllocationCount(), before);
  EXPECT_EQ(pool->free_bytes(), pool->budget_bytes());
}

// [cache.pool.1] to [cache.pool.5].
TEST(PagePool, CountsEqualACountFromScratchAfterRandomOperations) {
  auto pool = Pool(40, false);
  std::mt19937 random(1);
  std::vector<PageRef> uses;
  std::vector<std::pair<PageClass, PageId>> keeps, pins;
  const auto pick = [&](auto& from) { return from.begin() + random() % from.size(); };
  for (int i = 0; i < 20'000; ++i) {
    const PageClass c = random() % 2 == 0 ? 0 : 2;
    switch (random() % 7) {
      case 0:
        if (pool->free_bytes() >= pool->stride(c)) uses.push_back(pool->Take(c));
        break;
      case 1:
        if (!uses.empty()) uses.push_back(pick(uses)->Share());
        break;
      case 2:
      case 3:
        if (!uses.empty()) uses.erase(pick(uses));
        break;
      case 4:
        if (uses.empty()) break;
        keeps.emplace_back(uses.back().page_class(), uses.back().id());
        pool->Keep(keeps.back().first, keeps.back().second);
        break;
      case 5:
        if (keeps.empty()) break;
        if (const auto it = pick(keeps); random() % 2 == 0) {
          pool->Pin(it->first, it->second);
          pins.push_back(*it);
          break;
        } else if (std::ranges::find(pins, *it) == pins.end()) {
          pool->Unkeep(it->first, it->second);
          keeps.erase(it);
        }
        break;
      case 6:
        if (pins.empty()) break;
        pool->Unpin(pins.back().first, pins.back().second);
        pins.pop_back();
        break;
    }
    const Status status = pool->CheckInvariants();
    ASSERT_TRUE(status.ok()) << i << ": " << status.message();
  }
  uses.clear();
  for (const auto& [c, id] : pins) pool->Unpin(c, id);
  for (const auto& [c, id] : keeps) pool->Unkeep(c, id);
  EXPECT_EQ(pool->free_bytes(), pool->budget_bytes());
  EXPECT_EQ(pool->num_failures(), 0u);
}

}  // namespace
}  // namespace quire
