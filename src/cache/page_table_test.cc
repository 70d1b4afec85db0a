#include "cache/page_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <utility>

#include "base/allocation_count.h"

namespace quire {
namespace {

// In these tests a token's K and V are one number: slot i of a page is its i-th uint64_t.
std::unique_ptr<PagePool> Pool(uint32_t num_pages, uint32_t page_size) {
  const size_t page_bytes = page_size * sizeof(uint64_t);
  auto pool = PagePool::Create({.page_bytes = page_bytes,
                                .budget_bytes = num_pages * PageStride(page_bytes),
                                .fill_with_nan = true});
  EXPECT_TRUE(pool.ok()) << pool.status().message();
  return std::move(pool).value();
}

std::byte* Slot(const PageTable& table, uint32_t token) {
  return table.view().pages[token / table.page_size()] +
         token % table.page_size() * sizeof(uint64_t);
}
void Write(const PageTable& table, uint32_t token, uint64_t value) {
  std::memcpy(Slot(table, token), &value, sizeof value);
}
uint64_t Read(const PageTable& table, uint32_t token) {
  uint64_t value;
  std::memcpy(&value, Slot(table, token), sizeof value);
  return value;
}
// Grows to `length` and writes first_value, first_value + 1, ... into the new slots.
void Append(PageTable& table, uint32_t length, uint64_t first_value) {
  const uint32_t begin = table.length();
  const Status status = table.Reserve(length);
  ASSERT_TRUE(status.ok()) << status.message();
  for (uint32_t token = begin; token < length; ++token)
    Write(table, token, first_value + token - begin);
}

// CAC-02.
TEST(PageTable, ALengthThatIsAMultipleOfThePageHasNoEmptyLastPage) {
  auto pool = Pool(4, 16);
  PageTable table(pool.get(), 16);
  EXPECT_EQ(table.view().num_pages, 0u);
  ASSERT_TRUE(table.Reserve(32).ok());
  EXPECT_EQ(table.num_pages(), 2u);
  ASSERT_TRUE(table.Reserve(33).ok());
  EXPECT_EQ(table.num_pages(), 3u);
  table.Truncate(32);
  EXPECT_EQ(table.num_pages(), 2u);
  table.Truncate(0);
  EXPECT_EQ(table.num_pages(), 0u);
  EXPECT_EQ(pool->num_held(), 0u);
  EXPECT_TRUE(table.CheckInvariants().ok());
}

// CAC-04.
TEST(PageTable, FailedReserveTakesNothing) {
  auto pool = Pool(5, 16);
  PageTable table(pool.get(), 16);
  Append(table, 20, 100);
  const PageId first = table.page(0).id();
  EXPECT_EQ(table.PagesNeeded(112), 5u);
  const Status status = table.Reserve(112);
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), "need 5 pages, 3 of 5 free: shorten the text or raise --kv-memory");
  EXPECT_EQ(table.length(), 20u);
  EXPECT_EQ(table.num_pages(), 2u);
  EXPECT_EQ(table.page(0).id(), first);
  EXPECT_EQ(pool->num_free(), 3u);
  EXPECT_EQ(Read(table, 19), 119u);
  EXPECT_FALSE(table.Reserve(~0u).ok());
  EXPECT_EQ(pool->num_free(), 3u);
}

TEST(PageTable, ReserveNeverShrinks) {
  auto pool = Pool(4, 16);
  PageTable table(pool.get(), 16);
  ASSERT_TRUE(table.Reserve(40).ok());
  ASSERT_TRUE(table.Reserve(8).ok());
  EXPECT_EQ(table.length(), 40u);
  EXPECT_EQ(table.PagesNeeded(8), 0u);
}

// CAC-05: seven forks of 40 tokens share three pages; only two of them get a page to write to.
TEST(PageTable, ForksShareEveryPageUntilOneWrites) {
  auto pool = Pool(5, 16);
  PageTable table(pool.get(), 16);
  Append(table, 40, 0);
  std::vector<PageTable> forks;
  for (int i = 0; i < 7; ++i) forks.push_back(table.Fork());
  EXPECT_EQ(pool->num_held(), 3u);

  Append(forks[0], 41, 1000);
  Append(forks[1], 41, 2000);
  EXPECT_EQ(forks[2].PagesNeeded(41), 1u);
  EXPECT_FALSE(forks[2].Reserve(41).ok());
  EXPECT_EQ(forks[2].length(), 40u);
  EXPECT_EQ(pool->num_held(), 5u);
  EXPECT_EQ(Read(forks[0], 40), 1000u);
  EXPECT_EQ(Read(forks[1], 40), 2000u);
  for (uint32_t token = 0; token < 40; ++token)
    for (const PageTable& fork : forks) ASSERT_EQ(Read(fork, token), token);
  EXPECT_EQ(forks[0].page(1).id(), table.page(1).id());
  EXPECT_NE(forks[0].page(2).id(), table.page(2).id());

  forks.clear();
  EXPECT_EQ(table.PagesNeeded(41), 0u);  // the last holder writes in place
  EXPECT_EQ(pool->num_held(), 3u);
}

TEST(PageTable, AForkAtAPageBorderNeedsNoCopy) {
  auto pool = Pool(4, 16);
  PageTable table(pool.get(), 16);
  Append(table, 32, 0);
  PageTable fork = table.Fork();
  EXPECT_EQ(fork.PagesNeeded(33), 1u);
  Append(fork, 33, 500);
  EXPECT_EQ(fork.page(1).id(), table.page(1).id());
}

// A prompt that is cached whole still computes its last token, without writing a shared page.
TEST(PageTable, ATokenOfASharedPageIsWrittenIntoACopy) {
  auto pool = Pool(4, 16);
  PageTable table(pool.get(), 16);
  Append(table, 32, 0);
  PageTable fork = table.Fork();
  fork.Truncate(31);
  Append(fork, 32, 900);
  EXPECT_EQ(Read(table, 31), 31u);
  EXPECT_EQ(Read(fork, 31), 900u);
  EXPECT_EQ(Read(fork, 30), 30u);

  PageTable second = table.Fork();
  ASSERT_TRUE(second.MakeWritable(0, 1).ok());
  Write(second, 0, 700);
  EXPECT_EQ(Read(table, 0), 0u);
  EXPECT_EQ(second.page(1).id(), table.page(1).id());  // not of the range: still shared
  EXPECT_EQ(pool->num_free(), 0u);
  EXPECT_FALSE(second.MakeWritable(0, 32).ok());
  EXPECT_TRUE(second.MakeWritable(16, 16).ok());
  EXPECT_TRUE(second.MakeWritable(0, 16).ok());  // its own already
}

TEST(PageTable, AMovedTableIsEmptyAndItsViewGoesAlong) {
  auto pool = Pool(4, 16);
  PageTable table(pool.get(), 16);
  Append(table, 20, 0);
  const KvView view = table.view();
  PageTable moved = std::move(table);
  EXPECT_EQ(moved.view().pages, view.pages);
  EXPECT_EQ(table.length(), 0u);
  EXPECT_TRUE(table.CheckInvariants().ok());
  ASSERT_TRUE(table.Reserve(16).ok());
  table = std::move(moved);
  EXPECT_EQ(table.length(), 20u);
  EXPECT_EQ(pool->num_held(), 2u);
}

TEST(PageTable, GrowingUpToTheMostTokensAllocatesNothing) {
  auto pool = Pool(64, 16);
  PageTable table(pool.get(), 16, 64 * 16);
  PageTable fork(pool.get(), 16);
  Append(table, 8, 0);
  fork = table.Fork();
  const uint64_t before = AllocationCount();
  std::byte* const* pages = table.view().pages;
  for (uint32_t length = 9; length <= 63 * 16; ++length) {
    const bool ok = table.Reserve(length).ok();
    ASSERT_TRUE(ok);
  }
  table.Truncate(5);
  EXPECT_EQ(AllocationCount(), before);
  EXPECT_EQ(table.view().pages, pages);
}

// The plain model: a page is a shared vector, and its use count is the number of holds.
struct ModelTable {
  uint32_t length = 0;
  std::vector<std::shared_ptr<std::vector<uint64_t>>> pages;
};

class ModelCheck {
 public:
  explicit ModelCheck(uint32_t seed)
      : random_(seed),
        page_size_(1 + random_() % 5),
        num_pages_(1 + random_() % 12),
        pool_(Pool(num_pages_, page_size_)) {
    tables_.emplace_back(pool_.get(), page_size_);
    models_.emplace_back();
  }

  void Step() {
    const size_t pick = random_() % tables_.size();
    PageTable& table = tables_[pick];
    ModelTable& model = models_[pick];
    const uint32_t operation = random_() % 8;
    if (operation < 3) {
      const uint32_t length = random_() % (page_size_ * 6);
      Change(table, model, model.length, std::max(length, model.length), table.Reserve(length));
    } else if (operation == 3 && model.length > 0) {
      const uint32_t begin = random_() % model.length;
      const uint32_t end = begin + 1 + random_() % (model.length - begin);
      Change(table, model, begin, end, table.MakeWritable(begin, end));
    } else if (operation == 4) {
      model.length = random_() % (model.length + 1);
      model.pages.resize((model.length + page_size_ - 1) / page_size_);
      table.Truncate(model.length);
    } else if (operation < 7 && tables_.size() < 6) {
      if (random_() % 3 == 0) {
        tables_.emplace_back(pool_.get(), page_size_);
        models_.emplace_back();
      } else {
        tables_.push_back(table.Fork());
        models_.push_back(ModelTable(models_[pick]));
      }
    } else if (tables_.size() > 1) {
      std::swap(table, tables_.back());
      std::swap(model, models_.back());
      tables_.pop_back();
      models_.pop_back();
    }
    if (random_() % 8 == 0) pool_->ReleaseIdleMemory();
  }

  // Everything that can be seen is as in the model.
  void Check() {
    ASSERT_EQ(pool_->CheckInvariants().message(), "");
    std::vector<const void*> held;
    for (size_t t = 0; t < tables_.size(); ++t) {
      const PageTable& table = tables_[t];
      ASSERT_EQ(table.CheckInvariants().message(), "");
      ASSERT_EQ(table.length(), models_[t].length);
      ASSERT_EQ(table.view().num_pages, models_[t].pages.size());
      for (uint32_t i = 0; i < table.num_pages(); ++i) {
        ASSERT_EQ(pool_->num_holds(table.page(i).id()), models_[t].pages[i].use_count());
        held.push_back(models_[t].pages[i].get());
      }
      for (uint32_t token = 0; token < table.length(); ++token)
        ASSERT_EQ(Read(table, token), (*models_[t].pages[token / page_size_])[token % page_size_])
            << "table " << t << " token " << token;
    }
    ASSERT_EQ(pool_->num_held(), NumDistinct(std::move(held)));
  }

 private:
  static size_t NumDistinct(std::vector<const void*> pages) {
    std::sort(pages.begin(), pages.end());
    return std::unique(pages.begin(), pages.end()) - pages.begin();
  }

  // The model's answer to "make [begin, end) there and writable"; then both get new values.
  void Change(const PageTable& table, ModelTable& model, uint32_t begin, uint32_t end,
              const Status& status) {
    std::vector<const void*> held;
    for (const ModelTable& other : models_)
      for (const auto& page : other.pages) held.push_back(page.get());
    const size_t num_free = num_pages_ - NumDistinct(std::move(held));
    const size_t num_after = (end + page_size_ - 1) / page_size_;
    size_t num_needed = num_after > model.pages.size() ? num_after - model.pages.size() : 0;
    std::vector<size_t> copies;
    for (size_t i = begin / page_size_; i < model.pages.size() && i * page_size_ < end; ++i)
      if (begin < end && model.pages[i].use_count() > 1) copies.push_back(i);
    num_needed += copies.size();
    ASSERT_EQ(status.ok(), num_needed <= num_free) << status.message();
    if (!status.ok()) return;
    for (size_t i : copies)
      model.pages[i] = std::make_shared<std::vector<uint64_t>>(*model.pages[i]);
    while (model.pages.size() < num_after)
      model.pages.push_back(std::make_shared<std::vector<uint64_t>>(page_size_));
    model.length = std::max(model.length, end);
    for (uint32_t token = begin; token < end; ++token) {
      Write(table, token, ++last_value_);
      (*model.pages[token / page_size_])[token % page_size_] = last_value_;
    }
  }

  std::mt19937 random_;
  uint32_t page_size_;
  uint32_t num_pages_;
  std::unique_ptr<PagePool> pool_;
  std::vector<PageTable> tables_;
  std::vector<ModelTable> models_;
  uint64_t last_value_ = 0;
};

// [cache.table.1] to [cache.table.4].
TEST(PageTable, AgreesWithSharedVectorsUnderRandomOperations) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    ModelCheck check(seed);
    for (int step = 0; step < 400; ++step) {
      check.Step();
      check.Check();
      ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed << " step " << step;
    }
  }
}

}  // namespace
}  // namespace quire
