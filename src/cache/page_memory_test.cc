#include "cache/page_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <random>
#include <vector>

namespace quire {
namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kExtent = PageMemory::kExtentBytes;

PageMemory Memory(size_t page_bytes, size_t budget_bytes) {
  auto memory = PageMemory::Reserve(page_bytes, budget_bytes);
  EXPECT_TRUE(memory.ok()) << memory.status().message();
  return std::move(memory).value();
}

// Bytes of the whole range that are in memory now, by the system's own count.
size_t ResidentBytes(PageMemory& memory) {
  const size_t size = memory.num_pages() * memory.page_stride();
  std::vector<unsigned char> resident(size / 4096);
  EXPECT_EQ(mincore(memory.Address(0), size, resident.data()), 0);
  size_t num_resident = 0;
  for (unsigned char byte : resident) num_resident += byte & 1;
  return num_resident * 4096;
}

TEST(PageMemory, AnIdleBudgetOf8GiBTakesNoMemory) {
  const size_t before = quire::ResidentBytes();
  PageMemory memory = Memory(1105920, 8192 * kMiB);
  const size_t after = quire::ResidentBytes();
  EXPECT_EQ(memory.num_pages(), 7767u);  // 8 GiB / (270 * 4 KiB)
  EXPECT_EQ(memory.committed_bytes(), 0u);
  EXPECT_EQ(ResidentBytes(memory), 0u);
  // Our own tables are 8 bytes for each of 4,096 extents; the rest is the allocator's.
  EXPECT_LE(after, before + kMiB);
}

TEST(PageMemory, AWrittenPageCommitsItsExtentsAndNoOther) {
  PageMemory memory = Memory(3 * kMiB, 64 * kMiB);
  memory.BeginUse(1);  // [3, 6) MiB: extents 1 and 2
  std::memset(memory.Address(1), 1, memory.page_bytes());
  EXPECT_EQ(memory.committed_bytes(), 2 * kExtent);
  EXPECT_EQ(memory.slack_bytes(), kMiB);
  EXPECT_GE(ResidentBytes(memory), 3 * kMiB);
  EXPECT_LE(ResidentBytes(memory), memory.committed_bytes());
}

TEST(PageMemory, ExtentsWithoutAPageInUseGoBackAndReadAsZero) {
  PageMemory memory = Memory(kMiB + 1, 32 * kMiB);  // 1 MiB + 4 KiB a page: pages cross extents
  for (PageId id = 0; id < memory.num_pages(); ++id) {
    memory.BeginUse(id);
    std::memset(memory.Address(id), 1, memory.page_bytes());
  }
  const size_t committed_full = memory.committed_bytes();
  EXPECT_EQ(memory.ReleaseIdle(0, 0), 0u);
  for (PageId id = 0; id < memory.num_pages(); ++id)
    if (id != 5) memory.EndUse(id);
  EXPECT_EQ(memory.committed_bytes(), committed_full);  // slack until it is given back
  EXPECT_EQ(memory.slack_bytes(), committed_full - memory.page_stride());

  EXPECT_EQ(memory.ReleaseIdle(0, 0),
            committed_full - 2 * kExtent);  // page 5 crosses into extent 3
  EXPECT_EQ(memory.committed_bytes(), 2 * kExtent);
  EXPECT_LE(ResidentBytes(memory), 2 * kExtent);
  for (size_t i = 0; i < memory.page_bytes(); ++i)
    ASSERT_EQ(memory.Address(5)[i], std::byte{1}) << "a page in use lost byte " << i;
  EXPECT_EQ(memory.Address(0)[0], std::byte{0});

  memory.EndUse(5);
  EXPECT_EQ(memory.ReleaseIdle(0, 0), 2 * kExtent);
  EXPECT_EQ(memory.committed_bytes(), 0u);
  EXPECT_EQ(memory.ReleaseIdle(0, 0), 0u);
}

TEST(PageMemory, PagesAreAlignedApartAndFollowedBy64ReadableBytes) {
  for (size_t page_bytes : {size_t{1}, size_t{4095}, size_t{4096}, size_t{4097}, 2 * kMiB}) {
    // Budgets that end at an extent's border, so that nothing but the tail lies behind.
    PageMemory memory = Memory(page_bytes, 4 * kMiB);
    EXPECT_EQ(memory.page_stride() % 4096, 0u);
    EXPECT_GE(memory.page_stride(), page_bytes);
    EXPECT_LT(memory.page_stride(), page_bytes + 4096);
    for (PageId id = 0; id < memory.num_pages(); ++id) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.Address(id)) % 64, 0u);
      EXPECT_EQ(memory.Address(id), memory.Address(0) + id * memory.page_stride());
    }
    const std::byte* end = memory.Address(memory.num_pages() - 1) + page_bytes;
    for (int i = 0; i < 64; ++i) EXPECT_EQ(end[i], std::byte{0});
  }
}

TEST(PageMemory, ABudgetThatHoldsNoPageIsRefusedWithTheNumbers) {
  auto memory = PageMemory::Reserve(1105920, 1000000);
  EXPECT_EQ(memory.status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(memory.status().message(),
            "one KV page takes 1,105,920 bytes, the budget is 1,000,000: raise --kv-memory");
  // 4,097 bytes fit, the 8,192 that they count do not.
  EXPECT_FALSE(PageMemory::Reserve(4097, 5000).ok());
  EXPECT_FALSE(PageMemory::Reserve(0, 5000).ok());
  EXPECT_FALSE(PageMemory::Reserve(4096, ~size_t{0}).ok());
  EXPECT_FALSE(PageMemory::Reserve(~size_t{0}, ~size_t{0}).ok());
  EXPECT_FALSE(PageMemory::Reserve(4096, size_t{1} << 45).ok());  // 2^33 pages
}

TEST(PageMemory, CountsEqualACountFromScratchUnderRandomUse) {
  for (uint32_t seed = 0; seed < 30; ++seed) {
    std::mt19937 random(seed);
    // From many pages an extent to many extents a page.
    const size_t page_bytes = size_t{1} << (12 + random() % 11);
    PageMemory memory = Memory(page_bytes + random() % 9000, 24 * kMiB);
    std::vector<bool> in_use(memory.num_pages());
    for (int step = 0; step < 300; ++step) {
      const PageId id = random() % memory.num_pages();
      if (random() % 16 == 0) {
        const size_t committed = memory.committed_bytes();
        const size_t released = memory.ReleaseIdle(0, 0);
        ASSERT_EQ(memory.committed_bytes(), committed - released);
      } else if (!in_use[id]) {
        memory.BeginUse(id);
        in_use[id] = true;
      } else {
        memory.EndUse(id);
        in_use[id] = false;
      }
      const Status status = memory.CheckInvariants(in_use);
      ASSERT_TRUE(status.ok()) << status.message() << " seed " << seed << " step " << step;
      size_t used_bytes = 0;
      for (const bool is_used : in_use) used_bytes += is_used ? memory.page_stride() : 0;
      ASSERT_EQ(memory.slack_bytes() + used_bytes, memory.committed_bytes());
    }
  }
}

}  // namespace
}  // namespace quire
