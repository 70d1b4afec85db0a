#include "cache/tenant_heap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace quire {
namespace {

// [cache.tenant.3]
TEST(TenantHeap, TheLeastIsOnTopWhateverChanges) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    TenantHeap heap;
    heap.Reserve(50);
    std::map<TenantId, double> plain;
    for (int i = 0; i < 2000; ++i) {
      const TenantId tenant = random() % 50;
      if (random() % 3 == 0) {
        heap.Erase(tenant);
        plain.erase(tenant);
      } else {
        const double number = random() % 20;  // often equal
        heap.Set(tenant, number);
        plain[tenant] = number;
      }
      const Status status = heap.CheckInvariants();
      ASSERT_TRUE(status.ok()) << status.message();
      ASSERT_EQ(heap.empty(), plain.empty());
      if (plain.empty()) continue;
      auto least = plain.begin();
      for (auto at = plain.begin(); at != plain.end(); ++at)
        if (at->second < least->second) least = at;
      ASSERT_EQ(heap.top(), least->first) << "seed " << seed;
      ASSERT_EQ(heap.least(), least->second);
      const double most = random() % 20;
      const TenantId other = random() % 50;
      const bool has_another = std::any_of(plain.begin(), plain.end(), [&](const auto& entry) {
        return entry.first != other && entry.second <= most;
      });
      ASSERT_EQ(heap.HasAnother(other, most), has_another) << "seed " << seed;
      ASSERT_EQ(heap.contains(other), plain.contains(other));
    }
  }
}

}  // namespace
}  // namespace quire
