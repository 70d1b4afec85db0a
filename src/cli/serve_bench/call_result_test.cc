#include "cli/serve_bench/call_result.h"

#include <gtest/gtest.h>

namespace quire {
namespace {

using Json = nlohmann::ordered_json;

CallResult Call(double started, std::vector<double> chunks, uint32_t output_tokens) {
  return {.started = started,
          .chunks = std::move(chunks),
          .prompt_tokens = 10,
          .output_tokens = output_tokens,
          .cached_tokens = 4,
          .error = ""};
}

TEST(CallResult, TimesAreThoseOfVllmBench) {
  // Six tokens in three chunks: a gap is between chunks, tpot is over tokens.
  const CallResult results[] = {Call(1, {2, 3, 4.5}, 6)};
  Json report;
  SumUp(results, {.duration = 5}, report);
  EXPECT_EQ(report["mean_ttft_ms"], 1000);
  EXPECT_EQ(report["mean_tpot_ms"], 500);
  EXPECT_EQ(report["mean_itl_ms"], 1250);
  EXPECT_EQ(report["std_itl_ms"], 250);
  EXPECT_EQ(report["median_e2el_ms"], 3500);
  EXPECT_EQ(report["p99_e2el_ms"], 3500);
  EXPECT_EQ(report["request_throughput"], 0.2);
  EXPECT_EQ(report["output_throughput"], 1.2);
  EXPECT_EQ(report["total_token_throughput"], 3.2);
  EXPECT_EQ(report["total_cached_tokens"], 4);
}

TEST(CallResult, FailedCallsCountAsSuchAndNowhereElse) {
  CallResult failed = Call(0, {}, 0);
  failed.error = "refused";
  const CallResult results[] = {failed, Call(0, {1}, 1)};
  Json report;
  SumUp(results, {.duration = 2, .is_detailed = true}, report);
  EXPECT_EQ(report["completed"], 1);
  EXPECT_EQ(report["failed"], 1);
  EXPECT_EQ(report["first_error"], "refused");
  EXPECT_EQ(report["total_input_tokens"], 10);
  EXPECT_EQ(report["mean_tpot_ms"], 0);  // one token has none
  EXPECT_EQ(report["errors"], Json::array({"refused", ""}));
  EXPECT_EQ(report["ttfts"], Json::array({0, 1.0}));
}

TEST(CallResult, NothingAtAllGivesZeros) {
  Json report;
  SumUp({}, {}, report);
  EXPECT_EQ(report["completed"], 0);
  EXPECT_EQ(report["request_throughput"], 0);
  EXPECT_EQ(report["p99_ttft_ms"], 0);
}

TEST(CallResult, GoodputCountsThoseWithinAllGoals) {
  const CallResult results[] = {Call(0, {0.1, 1}, 2), Call(0, {0.4, 1}, 2), Call(0, {0.1, 3}, 2)};
  Json report;
  SumUp(results,
        {.goals = {ParseGoal("ttft:200").value(), ParseGoal("e2el:2000").value()}, .duration = 1},
        report);
  EXPECT_EQ(report["request_goodput"], 1);
  EXPECT_EQ(report["request_throughput"], 3);
}

TEST(CallResult, AGoalNeedsAKnownNameAndATime) {
  for (const char* text : {"", "ttft", "ttft:", "ttft:x", "itl:5", "ttft:0", "ttft:5x"})
    EXPECT_FALSE(ParseGoal(text).ok()) << text;
  EXPECT_EQ(ParseGoal("tpot:2.5").value().milliseconds, 2.5);
}

}  // namespace
}  // namespace quire
