#include "cli/latency.h"

#include <gtest/gtest.h>

namespace quire {
namespace {

TEST(Latency, PercentilesLieBetweenTheNearestValues) {
  const Summary summary = SummaryOf({4, 1, 3, 2, 5});
  EXPECT_EQ(summary.mean, 3);
  EXPECT_EQ(summary.median, 3);
  EXPECT_DOUBLE_EQ(summary.p95, 4.8);
  EXPECT_DOUBLE_EQ(summary.p99, 4.96);
  EXPECT_EQ(summary.max, 5);
  EXPECT_EQ(SummaryOf({}).max, 0);
  EXPECT_EQ(SummaryOf({7}).p99, 7);
}

TEST(Latency, TimesAreCountedFromEachRequest) {
  const AnswerTimes answers[] = {{.submitted = 1, .tokens = {2, 4, 5}},
                                 {.submitted = 2, .tokens = {2.5, 3.5, 6.5}},
                                 {.submitted = 0, .tokens = {}}};
  const Latencies l = LatenciesOf(answers);
  EXPECT_EQ(l.num_tokens, 6u);
  EXPECT_EQ(l.duration, 5.5);
  EXPECT_EQ(l.ttft.mean, 0.75);
  EXPECT_EQ(l.tpot.mean, 1.75);
  EXPECT_EQ(l.itl.max, 3);
  EXPECT_EQ(l.itl.mean, 1.75);
  EXPECT_EQ(l.e2el.max, 4.5);
  // From 2.5 to 5 come the tokens at 3.5, 4 and 5.
  ASSERT_TRUE(l.decode_rate.has_value());
  EXPECT_DOUBLE_EQ(*l.decode_rate, 3 / 2.5);
}

TEST(Latency, NoDecodeRateWhereAnswersFollowEachOther) {
  const AnswerTimes answers[] = {{.submitted = 0, .tokens = {1, 2}},
                                 {.submitted = 0, .tokens = {3, 4}}};
  EXPECT_FALSE(LatenciesOf(answers).decode_rate.has_value());
}

}  // namespace
}  // namespace quire
