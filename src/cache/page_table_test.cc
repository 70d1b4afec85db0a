// WIN-07, WIN-09, CAC-02 and what cache/page_table.h promises: tables without tree and budget.
#include "cache/page_table.h"

#include <gtest/gtest.h>

#include <cstring>
#include <utility>

#include "base/allocation_count.h"

namespace quire {
namespace {

constexpr uint32_t kPageSize = 16;
constexpr size_t kOpen = 4096, kSealed = 1000;

struct Fixture {
  explicit Fixture(const KvGroupShape& group, uint32_t num_units = 64) {
    shape.page_size = kPageSize;
    shape.groups = {group};
    pool = PagePool::Create({.page_bytes = PageBytesByClass(shape),
                             .budget_bytes = num_units * size_t{4096},
                             .fill_with_nan = true})
               .value();
  }
  PageTable Table(uint32_t max_length = 1024) { return {pool.get(), &shape, 0, max_length}; }
  // A step: its pages, then its end.
  void Step(PageTable& table, uint32_t begin, uint32_t end) {
    const size_t held = pool->held_bytes(), bytes = table.BytesNeeded(begin, end);
    ASSERT_LE(bytes, pool->free_bytes());
    table.Grow(begin, end);
    EXPECT_EQ(pool->held_bytes() - held, bytes) << begin << " to " << end;
    table.Settle(end, end);
    Check(table, end);
  }
  void Check(const PageTable& table, uint32_t length) {
    const Status status = table.CheckInvariants(length, length);
    EXPECT_TRUE(status.ok()) << status.message();
  }
  KvShape shape;
  std::unique_ptr<PagePool> pool;
};

constexpr KvGroupShape kF16 = {.open_page_bytes = kOpen};
constexpr KvGroupShape kSink = {
    .open_page_bytes = kOpen, .sealed_page_bytes = kSealed, .sink_pages = 1};

std::vector<bool> Held(const PageTable& table, bool open) {
  std::vector<bool> held;
  for (uint32_t page = 0; page < table.num_pages(); ++page)
    held.push_back(static_cast<bool>(open ? table.open(page) : table.sealed(page)));
  return held;
}
using Bools = std::vector<bool>;

// CAC-02: page 16; 32 tokens, then one more, then none.
TEST(PageTable, TheLastPageIsFullBeforeANewOneIsTaken) {
  Fixture f(kF16);
  PageTable table = f.Table();
  EXPECT_EQ(table.BytesNeeded(0, 0), 0u);
  f.Step(table, 0, 32);
  EXPECT_EQ(table.num_pages(), 2u);
  f.Step(table, 32, 33);
  EXPECT_EQ(table.num_pages(), 3u);
  f.Step(table, 33, 48);
  EXPECT_EQ(table.num_pages(), 3u);
  table.Settle(32, 32);
  EXPECT_EQ(table.num_pages(), 2u);
  table.Settle(0, 0);
  EXPECT_EQ(table.num_pages(), 0u);
  EXPECT_EQ(f.pool->held_bytes(), 0u);
}

TEST(PageTable, ViewNamesThePagesAndOnlyThem) {
  Fixture f(kF16);
  PageTable table = f.Table();
  EXPECT_EQ(table.view().num_pages, 0u);
  f.Step(table, 0, 40);
  const KvView view = table.view();
  ASSERT_EQ(view.num_pages, 3u);
  EXPECT_EQ(view.sealed, nullptr);
  for (uint32_t page = 0; page < 3; ++page) EXPECT_EQ(view.pages[page], table.open(page).address());
  PageTable moved = std::move(table);
  EXPECT_EQ(moved.view().pages, view.pages) << "a move is no change";
}

TEST(PageTable, AStepThatFillsPagesHasBothFormsAndThenTheOnesThatAreRead) {
  Fixture f(kSink);
  PageTable table = f.Table();
  table.Grow(0, 50);
  EXPECT_EQ(Held(table, true), (Bools{true, true, true, true}));
  EXPECT_EQ(Held(table, false), (Bools{false, true, true, false}));
  for (uint32_t page = 0; page < 4; ++page) {
    EXPECT_NE(table.view().pages[page], nullptr);
    EXPECT_EQ(table.view().sealed[page] != nullptr, page == 1 || page == 2);
  }
  table.Settle(50, 50);
  EXPECT_EQ(Held(table, true), (Bools{true, false, false, true}));
  EXPECT_EQ(Held(table, false), (Bools{false, true, true, false}));
  EXPECT_EQ(table.view().pages[1], nullptr);
  f.Check(table, 50);
  f.Step(table, 50, 63);
  f.Step(table, 63, 64);
  EXPECT_EQ(Held(table, true), (Bools{true, false, false, false}));
  EXPECT_EQ(Held(table, false), (Bools{false, true, true, true}));
}

TEST(PageTable, RecentPagesStayOpenBesideTheirSealedForm) {
  Fixture f({.open_page_bytes = kOpen, .sealed_page_bytes = kSealed, .recent_pages = 2});
  PageTable table = f.Table();
  f.Step(table, 0, 5 * kPageSize);  // the next query is in page 5
  EXPECT_EQ(Held(table, true), (Bools{false, false, false, true, true}));
  EXPECT_EQ(Held(table, false), (Bools{true, true, true, true, true}));
  f.Step(table, 5 * kPageSize, 6 * kPageSize - 1);
  EXPECT_EQ(Held(table, true), (Bools{false, false, false, true, true, true}));
  f.Step(table, 6 * kPageSize - 1, 6 * kPageSize);
  EXPECT_EQ(Held(table, true), (Bools{false, false, false, false, true, true}));
}

// WIN-09: 128 tokens, window 16, page 16, in chunks of 1 and of 100.
TEST(PageTable, AWindowHoldsItsPagesAndThoseOfTheStep) {
  for (const uint32_t chunk : {1u, 100u}) {
    Fixture f({.window = 16, .open_page_bytes = kOpen});
    PageTable table = f.Table();
    const uint32_t most_in_step = chunk == 1 ? 3 : 9;
    for (uint32_t begin = 0; begin < 128;) {
      const uint32_t end = std::min(begin + chunk, 128u);
      table.Grow(begin, end);
      EXPECT_LE(table.num_pages() - table.first_page(), most_in_step) << end;
      table.Settle(end, end);
      f.Check(table, end);
      EXPECT_LE(table.num_pages() - table.first_page(), 2u) << end;
      for (uint32_t page = 0; page < table.first_page(); ++page)
        EXPECT_EQ(table.view().pages[page], nullptr);
      begin = end;
    }
  }
}

TEST(PageTable, TheLastKeyOfTheWindowDecidesWhenAPageGoes) {
  Fixture f({.window = 17, .open_page_bytes = kOpen});
  PageTable table = f.Table();
  f.Step(table, 0, 31);  // position 31 sees 15 to 31
  EXPECT_EQ(table.first_page(), 0u);
  f.Step(table, 31, 32);  // position 32 sees 16 to 32
  EXPECT_EQ(table.first_page(), 1u);
}

// A prompt that is cached whole: its last token is computed again.
TEST(PageTable, SettlingKeepsWhatTheNextPositionSees) {
  Fixture f({.window = 17, .open_page_bytes = kOpen});
  PageTable table = f.Table();
  table.Grow(0, 32);
  table.Settle(32, 31);
  EXPECT_EQ(table.first_page(), 0u);
  EXPECT_TRUE(table.CheckInvariants(32, 31).ok());
  EXPECT_FALSE(table.CheckInvariants(32, 32).ok());

  Fixture recent({.open_page_bytes = kOpen, .sealed_page_bytes = kSealed, .recent_pages = 1});
  PageTable pages = recent.Table();
  pages.Grow(0, 48);
  pages.Settle(48, 47);  // it reads page 2 and, as recent, page 1
  EXPECT_EQ(Held(pages, true), (Bools{false, true, true}));
  EXPECT_TRUE(pages.CheckInvariants(48, 47).ok());
}

// WIN-07: 100 tokens, f16: 7 pages of the full layer, at most 2 of the window layer.
TEST(PageTable, NoGroupIsPaddedToAnothersPage) {
  for (const uint32_t window : {0u, 16u}) {
    Fixture f({.window = window, .open_page_bytes = 16 * 1024});
    PageTable table = f.Table();
    for (uint32_t i = 0; i < 100; ++i) f.Step(table, i, i + 1);
    EXPECT_LE(f.pool->held_bytes(), (window == 0 ? 7u : 2u) * 16 * 1024);
    EXPECT_GE(f.pool->held_bytes(), (window == 0 ? 7u : 1u) * 16 * 1024);
  }
}

TEST(PageTable, ASharedPageIsCopiedBeforeItIsWritten) {
  Fixture f(kF16);
  PageTable table = f.Table();
  f.Step(table, 0, 20);
  std::memset(table.view().pages[1], 7, kOpen);
  PageTable fork = table.Fork(1024);
  f.Check(fork, 20);
  EXPECT_EQ(f.pool->held_bytes(), 2 * kOpen) << "nothing is copied yet";
  EXPECT_EQ(fork.view().pages[1], table.view().pages[1]);
  f.Step(fork, 20, 21);
  EXPECT_EQ(fork.view().pages[0], table.view().pages[0]);
  EXPECT_NE(fork.view().pages[1], table.view().pages[1]);
  EXPECT_EQ(std::memcmp(fork.view().pages[1], table.view().pages[1], kOpen), 0);
  const std::byte* own = table.view().pages[1];
  EXPECT_EQ(table.BytesNeeded(20, 21), 0u);
  f.Step(table, 20, 21);  // alone by now: in place
  EXPECT_EQ(table.view().pages[1], own);
}

TEST(PageTable, APageThatANodeKeepsIsCopiedToo) {
  Fixture f(kF16);
  PageTable table = f.Table();
  f.Step(table, 0, 20);
  f.pool->Keep(0, table.open(1).id());
  const PageId kept = table.open(1).id();
  EXPECT_EQ(table.BytesNeeded(20, 21), kOpen);
  table.Grow(20, 21);
  EXPECT_NE(table.open(1).id(), kept);
  EXPECT_EQ(f.pool->cached_bytes(), kOpen);
  f.pool->Unkeep(0, kept);
}

TEST(PageTable, FullSharedPagesAreNeverCopied) {
  Fixture f(kF16);
  PageTable table = f.Table();
  f.Step(table, 0, 32);
  PageTable fork = table.Fork(1024);
  EXPECT_EQ(fork.BytesNeeded(32, 40), kOpen);  // the new page
  f.Step(fork, 32, 40);
  EXPECT_EQ(fork.view().pages[1], table.view().pages[1]);
}

TEST(PageTable, ForksOfWindowsAndSealedPagesHaveTheSameForms) {
  for (const KvGroupShape& group :
       {KvGroupShape{.window = 20, .open_page_bytes = kOpen}, kSink,
        KvGroupShape{.window = 40, .open_page_bytes = kOpen, .sealed_page_bytes = kSealed}}) {
    Fixture f(group);
    PageTable table = f.Table();
    f.Step(table, 0, 90);
    const size_t held = f.pool->held_bytes();
    {
      PageTable fork = table.Fork(1024);
      f.Check(fork, 90);
      EXPECT_EQ(fork.first_page(), table.first_page());
      EXPECT_EQ(Held(fork, true), Held(table, true));
      EXPECT_EQ(Held(fork, false), Held(table, false));
      EXPECT_EQ(f.pool->held_bytes(), held);
    }
    EXPECT_EQ(f.pool->held_bytes(), held);
    f.Check(table, 90);
  }
}

TEST(PageTable, APageThatIsNotFullAnyMoreLosesItsSealedForm) {
  Fixture f(kSink);
  PageTable table = f.Table();
  f.Step(table, 0, 40);
  table.Grow(40, 64);    // both forms of pages 2 and 3
  table.Settle(41, 41);  // one token was wanted
  EXPECT_EQ(table.num_pages(), 3u);
  EXPECT_FALSE(table.sealed(2));
  EXPECT_TRUE(table.open(2));
  f.Check(table, 41);
  f.Step(table, 41, 48);
  EXPECT_TRUE(table.sealed(2));
}

TEST(PageTable, AdoptedPagesStandWhereTheTableGoesOn) {
  Fixture f({.window = 20, .open_page_bytes = kOpen});
  PageTable table = f.Table();
  f.Step(table, 0, 64);
  PageTable other = f.Table();
  other.SkipTo(table.first_page());
  EXPECT_EQ(other.view().num_pages, table.first_page());
  for (uint32_t page = table.first_page(); page < 4; ++page)
    other.Adopt(table.open(page).Share(), PageRef());
  f.Check(other, 64);
  for (uint32_t page = 0; page < 4; ++page)
    EXPECT_EQ(other.view().pages[page], table.view().pages[page]);
}

TEST(PageTable, InvariantsNameWhatIsWrong) {
  Fixture f(kF16);
  PageTable table = f.Table();
  f.Step(table, 0, 40);
  EXPECT_NE(table.CheckInvariants(10, 10).message().find("[cache.table.1]"), std::string::npos);
  table.open(1).Reset();
  EXPECT_NE(table.CheckInvariants(40, 40).message().find("[cache.table.1]"), std::string::npos);
  table.open(1) = f.pool->Take(0);  // the view is not told
  table.open(2) = f.pool->Take(0);
  EXPECT_NE(table.CheckInvariants(40, 40).message().find("[cache.table.2]"), std::string::npos);
}

TEST(PageTable, GrowingToItsMostAllocatesNothing) {
  for (const KvGroupShape& group :
       {kF16, kSink, KvGroupShape{.window = 20, .open_page_bytes = kOpen}}) {
    Fixture f(group, 600);
    PageTable table = f.Table(4096);
    const uint64_t before = AllocationCount();
    for (uint32_t i = 0; i < 4096; ++i) {
      table.Grow(i, i + 1);
      table.Settle(i + 1, i + 1);
    }
    EXPECT_EQ(AllocationCount(), before);
    f.Check(table, 4096);
  }
}

}  // namespace
}  // namespace quire
