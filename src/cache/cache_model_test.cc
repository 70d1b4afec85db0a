// Model check of the cache: CAC-01 to CAC-07, CAC-12, CAC-15 and CAC-16 as invariants after every
// operation. More operations: cache_model_main.cc.
#include "cache/cache_model.h"

#include <gtest/gtest.h>

namespace quire {
namespace {

TEST(CacheModel, NoInvariantBreaksUnderRandomOperations) {
  constexpr uint64_t kOperations = 20'000;  // in each case
  for (const CacheModelCase& c : CacheModelCases()) {
    uint64_t matched = 0, refused = 0;
    for (uint64_t seed = 0; seed < 5; ++seed) {
      CacheModel model(c.shape, 12 + static_cast<uint32_t>(seed) * 6, seed);
      for (uint64_t i = 0; i < kOperations / 5; ++i) {
        const Status status = model.Step();
        ASSERT_TRUE(status.ok()) << c.name << ", seed " << seed << ", operation " << i << ": "
                                 << status.message();
      }
      matched += model.matched_tokens();
      refused += model.num_failed_reserves();
      const Status drained = model.Drain();
      ASSERT_TRUE(drained.ok()) << c.name << ", seed " << seed << ": " << drained.message();
    }
    EXPECT_GT(matched, kOperations / 40) << c.name;   // the pool is tiny and shared,
    EXPECT_GT(refused, kOperations / 500) << c.name;  // and it is full at times
  }
}

}  // namespace
}  // namespace quire
