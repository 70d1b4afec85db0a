#include "cli/workload.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace quire {
namespace {

TEST(Workload, LengthsAreANumberOrARange) {
  const auto one = ParseLengthRange("--x", "256"), range = ParseLengthRange("--x", "100-300");
  ASSERT_TRUE(one.ok() && range.ok());
  EXPECT_EQ(one->least, 256u);
  EXPECT_EQ(one->most, 256u);
  EXPECT_EQ(range->least, 100u);
  EXPECT_EQ(range->most, 300u);
  for (const char* wrong : {"", "x", "-5", "3-", "300-100", "1-2-3", "99999999999"}) {
    const auto parsed = ParseLengthRange("--x", wrong);
    ASSERT_FALSE(parsed.ok()) << wrong;
    EXPECT_NE(parsed.status().message().find("--x"), std::string::npos);
  }
}

TEST(Workload, LengthsStayInTheirRangesAndReachBothEnds) {
  const auto requests =
      PlanRequests({.num_requests = 200, .prompt_len = {3, 5}, .output_len = {1, 2}});
  uint32_t least = UINT32_MAX, most = 0;
  for (const PlannedRequest& request : requests) {
    least = std::min(least, request.prompt_len());
    most = std::max(most, request.prompt_len());
    EXPECT_GE(request.output_len, 1u);
    EXPECT_LE(request.output_len, 2u);
    EXPECT_EQ(request.arrival_seconds, 0);
  }
  EXPECT_EQ(least, 3u);
  EXPECT_EQ(most, 5u);
}

TEST(Workload, OnlyRequestsOfAGroupShareAPrefixAndNothingMore) {
  const auto requests = PlanRequests({.num_requests = 6,
                                      .prompt_len = {9, 9},
                                      .output_len = {1, 1},
                                      .shared_prefix = 10,
                                      .num_groups = 2});
  std::vector<std::vector<TokenId>> prompts;
  for (const auto& request : requests) prompts.push_back(MakePrompt(request.prompt, 7, 50));
  for (size_t a = 0; a < 6; ++a)
    for (size_t b = a + 1; b < 6; ++b) {
      const auto end = std::mismatch(prompts[a].begin(), prompts[a].end(), prompts[b].begin());
      EXPECT_EQ(end.first - prompts[a].begin(), a % 2 == b % 2 ? 10 : 0) << a << " " << b;
    }
  for (const TokenId id : prompts[0]) EXPECT_TRUE(id >= 0 && id < 50);
  EXPECT_EQ(MakePrompt(requests[3].prompt, 7, 50), prompts[3]);
  EXPECT_NE(MakePrompt(requests[3].prompt, 8, 50), prompts[3]);
}

TEST(Workload, DistinctPromptsShareNothing) {
  auto requests = PlanRequests(
      {.num_requests = 5, .prompt_len = {4, 4}, .output_len = {1, 1}, .shared_prefix = 30});
  MakeDistinct(requests);
  for (size_t a = 0; a < 5; ++a) {
    EXPECT_EQ(requests[a].prompt_len(), 34u);
    for (size_t b = a + 1; b < 5; ++b)
      EXPECT_NE(MakePrompt(requests[a].prompt, 1, 40)[0], MakePrompt(requests[b].prompt, 1, 40)[0]);
  }
}

TEST(Workload, ArrivalsFollowTheRate) {
  std::vector<PlannedRequest> requests(4000);
  SpreadArrivals(requests, 20, 3);
  EXPECT_TRUE(std::is_sorted(requests.begin(), requests.end(), [](const auto& a, const auto& b) {
    return a.arrival_seconds < b.arrival_seconds;
  }));
  // The sum of 4,000 exponential gaps lies within 8 % of its mean but for 1 seed in a million.
  EXPECT_NEAR(requests.back().arrival_seconds, 200, 16);
}

}  // namespace
}  // namespace quire
