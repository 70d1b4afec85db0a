// Apart from the other tests: this program counts operator new (base/allocation_count.h).
#include <gtest/gtest.h>

#include "attention/plan_progress.h"
#include "attention/test_pages.h"
#include "base/allocation_count.h"

namespace quire {
namespace {

TEST(AttentionPlanAllocation, NothingIsAllocatedAfterTheLargestStep) {
  const AttentionShape shape = MakeTestShape({.num_kv_heads = 2, .group_size = 3});
  // Pages that nobody looks at: those before page 20 are shared by all, those before page 40 by
  // eight sequences each.
  std::vector<std::vector<std::byte*>> tables(32);
  for (size_t i = 0; i < 32; ++i)
    for (size_t page = 0; page < 60; ++page)
      tables[i].push_back(
          reinterpret_cast<std::byte*>(64 + 64 * (page + (page < 20   ? 0
                                                          : page < 40 ? 100 * (i / 8 + 1)
                                                                      : 1000 * (i + 1)))));
  std::vector<SequenceRows> sequences(32);
  AttentionPlan plan;
  PlanProgress progress;
  // num_sequences rows each at any position up to the most.
  const auto build = [&](uint32_t num_sequences, uint32_t position, uint32_t num_rows) {
    for (uint32_t i = 0; i < num_sequences; ++i)
      sequences[i] = {
          {.pages = tables[i].data(), .num_pages = 60}, i * num_rows, num_rows, position};
    plan.Build(shape, std::span(sequences).first(num_sequences), 4);
    progress.Build(plan);
  };
  build(32, 3700, 16);
  EXPECT_EQ(plan.run_items().size(), 2u * (1 + 4));
  for (uint32_t i = 0; i < 32; ++i) build(32, 3700, 1 + i % 16);
  const uint64_t before = AllocationCount();
  for (uint32_t position = 0; position < 3700; position += 7)
    build(1 + position % 32, position, 1 + position % 16);
  EXPECT_EQ(AllocationCount(), before);
}

}  // namespace
}  // namespace quire
