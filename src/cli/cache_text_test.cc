#include "cli/cache_text.h"

#include <gtest/gtest.h>

#include "cli/text_table.h"

namespace quire {
namespace {

using Json = nlohmann::ordered_json;

TEST(TextTable, IsAlignedForPeopleAndTabSeparatedForPipes) {
  TextTable table({{"name"}, {"bytes", true}, {"label"}});
  table.AddRow({"a", "1,234", "x"});
  table.AddRow({"longer", "5", "tab\there"});
  EXPECT_EQ(table.Text(true),
            "name    bytes  label\n"
            "a       1,234  x\n"
            "longer      5  tab here\n");
  EXPECT_EQ(table.Text(false), "name\tbytes\tlabel\na\t1,234\tx\nlonger\t5\ttab here\n");
}

TEST(CacheText, PrefixesSayHowLongTheyAreKept) {
  const Json prefixes = {{"prefixes",
                          {{{"id", "00ff"},
                            {"label", "sys\x1b[31m"},
                            {"tenant", "ada"},
                            {"tokens", 1024},
                            {"pages", 16},
                            {"bytes", 1048576},
                            {"hits", 7},
                            {"last_used", 1000},
                            {"holders", 0},
                            {"pinned", true},
                            {"retained_until", nullptr}},
                           {{"id", "01"}, {"pinned", false}, {"retained_until", 1700}}}}};
  const std::string text = PrefixesText(prefixes, false, 1060);
  EXPECT_NE(text.find("00ff\t1024\t16\t1048576\t7\t60 s\t0\tpinned\tada\tsys\\x1B[31m\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("01\t-\t-\t-\t-\t-\t-\t10 min\t-\t-\n"), std::string::npos) << text;
  EXPECT_NE(PrefixesText(prefixes, true, 1060).find("1,048,576"), std::string::npos);
}

TEST(CacheText, AnswersOfAnotherServerAreNoCrash) {
  for (const Json& odd : {Json(), Json::array({1}), Json{{"prefixes", 5}}, Json{{"groups", {1}}}}) {
    (void)CacheInfoText(odd, true);
    (void)RequestsText(odd, true);
    (void)PrefixesText(odd, true, 0);
  }
}

TEST(StatLines, TellWhatHappenedBetweenTwoScrapes) {
  const auto metrics = [](int generated, int hits) {
    return MetricText::Parse(
               "vllm:num_requests_running{engine=\"0\"} 3\n"
               "vllm:kv_cache_usage_perc 0.25\n"
               "vllm:generation_tokens_total " +
               std::to_string(generated) + "\nvllm:prefix_cache_hits_total " +
               std::to_string(hits) + "\nvllm:prefix_cache_queries_total 200\n")
        .value();
  };
  StatLines lines(false);
  EXPECT_FALSE(lines.Next(metrics(100, 0), 1).has_value());
  EXPECT_EQ(lines.Next(metrics(200, 0), 3).value_or(""), "3\t0\t0.0\t50.0\t25.0\t-\t-\t0\n");
}

}  // namespace
}  // namespace quire
