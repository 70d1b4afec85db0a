#include "plan/plan_chart.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "plan/test_models.h"

namespace quire {
namespace {

std::string ChartOf(KvModel model, uint32_t users, uint32_t context, uint64_t budget) {
  PlanRequest request{.model = std::move(model), .num_users = users, .context_len = context};
  request.memory.total_bytes = uint64_t{64} << 30;
  request.memory.kv_bytes = budget;
  auto plan = MakePlan(std::move(request));
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  return PlanChart(*plan);
}

size_t Count(std::string_view text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

TEST(PlanChart, HasTwoPanelsWithAxesUnitsAndLegends) {
  const std::string svg = ChartOf(Llama8B(), 20, 16'000, uint64_t{40} << 30);
  EXPECT_TRUE(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  EXPECT_EQ(Count(svg, ">context, tokens<"), 2u);
  EXPECT_EQ(Count(svg, ">GiB<"), 2u);
  EXPECT_EQ(Count(svg, ">KV budget<"), 2u);
  for (const char* label : {">1 user<", ">5 users<", ">10 users<", ">20 users<", ">40 users<",
                            ">f16<", ">int8 (planned)<", ">kivi4<", ">15k<"})
    EXPECT_NE(svg.find(label), std::string::npos) << label;
  EXPECT_NE(svg.find("prefers-color-scheme: dark"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
}

// 20 users of 16,000 tokens are 39.06 GiB, so the scale ends at 40 (a step of 10) and the last
// point of that line lies at 60 + 300 x (1 - 39.0625 / 80) with 40 users, 78.1 GiB, on the scale.
TEST(PlanChart, LinesEndWhereThePlanDoes) {
  const std::string svg = ChartOf(Llama8B(), 20, 16'000, uint64_t{40} << 30);
  EXPECT_NE(svg.find("430.0 213.5\""), std::string::npos);
  EXPECT_NE(svg.find("430.0 67.0\""), std::string::npos);
}

TEST(PlanChart, ExtremesDrawToo) {
  EXPECT_EQ(Count(ChartOf(Stories(), 1, 1, 1), "nan"), 0u);
  EXPECT_EQ(Count(ChartOf(Llama70B(), kMostPlannedUsers, kMostPlannedTokens, 1), "nan"), 0u);
  EXPECT_EQ(Count(ChartOf(DeepSeekV3(), 3, 100, 1), ">kivi4"), 0u);
}

TEST(PlanChart, NamesCannotBreakOut) {
  KvModel model = Stories();
  model.name = "<script>&";
  EXPECT_NE(ChartOf(model, 1, 100, 1).find("&lt;script&gt;&amp;"), std::string::npos);
}

}  // namespace
}  // namespace quire
