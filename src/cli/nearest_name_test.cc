#include "cli/nearest_name.h"

#include <gtest/gtest.h>

namespace quire {
namespace {

TEST(NearestName, DistanceCountsInsertsDropsChangesAndSwaps) {
  EXPECT_EQ(EditDistance("", ""), 0u);
  EXPECT_EQ(EditDistance("", "abc"), 3u);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3u);
  EXPECT_EQ(EditDistance("port", "prot"), 1u);
  EXPECT_EQ(EditDistance("abc", "abc"), 0u);
}

TEST(NearestName, FindsWhatWasMeantAndNothingFarAway) {
  const std::vector<std::string> flags = {"--port", "--host", "--kv-memory", "--kv", "-c"};
  EXPECT_EQ(NearestName("--prot", flags), "--port");
  EXPECT_EQ(NearestName("--kv-memroy", flags), "--kv-memory");
  EXPECT_EQ(NearestName("--kvmemory", flags), "--kv-memory");
  EXPECT_EQ(NearestName("--no-such-flag", flags), std::nullopt);
  EXPECT_EQ(NearestName(std::string(100'000, 'x'), flags), std::nullopt);
  EXPECT_EQ(NearestName("--port", {}), std::nullopt);
}

}  // namespace
}  // namespace quire
