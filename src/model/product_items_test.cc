#include "model/product_items.h"

#include <gtest/gtest.h>

namespace quire {
namespace {

// Whatever the sizes, the shares cover all units once and in order, and none grows on the way.
TEST(ProductItems, SharesCoverEverythingAndShrink) {
  const LinearKernels& kernels = GetLinearKernels(InstructionSet::kPortable);
  for (const int num_threads : {1, 2, 3, 16}) {
    const ProductItems items(kernels, num_threads);
    for (const int total : {1, 2, 7, 60, 3072}) {
      for (const int64_t unit_bytes : {int64_t{100}, int64_t{5760}, int64_t{300'000}}) {
        const uint32_t count = items.CountOf(total, unit_bytes);
        int at = 0, last_size = total;
        for (uint32_t item = 0; item < count; ++item) {
          const auto [begin, end] = items.RangeOf(total, unit_bytes, item);
          ASSERT_EQ(begin, at);
          ASSERT_GT(end, begin);
          ASSERT_LE(end - begin, last_size);
          // No share holds the others up for long.
          if (end - begin > 1) {
            ASSERT_LE((end - begin) * unit_bytes, 256 << 10);
          }
          last_size = end - begin;
          at = end;
        }
        ASSERT_EQ(at, total) << num_threads << " threads";
      }
    }
  }
}

}  // namespace
}  // namespace quire
