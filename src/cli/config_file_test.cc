#include "cli/config_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace quire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ConfigFile, LinesGiveNamesAndValues) {
  std::vector<std::string> problems;
  const auto entries = ParseConfig(
      "# comment\n\nport = 9000\r\n"
      "  kv-memory=8GiB # half\n"
      "chat-template-kwargs = '{\"a\": \"#1\", \"b\": 2}'\n"
      "owned-by = \"a \\\"b\\\" \\\\ c\" # x\n"
      "served-model-name = [ a, \"b, ]\" , c,]\n"
      "cors-origins = []\n"
      "no-auth = true",
      "f", &problems);
  EXPECT_TRUE(problems.empty()) << problems[0];
  ASSERT_EQ(entries.size(), 7u);
  EXPECT_EQ(entries[0].name, "port");
  EXPECT_EQ(entries[0].line, 3);
  EXPECT_THAT(entries[0].values, ElementsAre("9000"));
  EXPECT_THAT(entries[1].values, ElementsAre("8GiB"));
  EXPECT_THAT(entries[2].values, ElementsAre("{\"a\": \"#1\", \"b\": 2}"));
  EXPECT_THAT(entries[3].values, ElementsAre("a \"b\" \\ c"));
  EXPECT_THAT(entries[4].values, ElementsAre("a", "b, ]", "c"));
  EXPECT_TRUE(entries[5].values.empty());
  EXPECT_EQ(entries[6].line, 9);
}

TEST(ConfigFile, EachWrongLineIsAProblemWithItsNumber) {
  std::vector<std::string> problems;
  const auto entries = ParseConfig(
      "port\n[serve]\n= 3\nport =\nport = \"1\nport = \"1\" 2\nport = [1\nport = [1] 2\n"
      "port = 1\nport = 2\n",
      "f", &problems);
  EXPECT_EQ(entries.size(), 1u);
  EXPECT_THAT(
      problems,
      ElementsAre(HasSubstr("f:1: 'port': need NAME = VALUE"), HasSubstr("f:2: '[serve]'"),
                  HasSubstr("f:3: '= 3'"), HasSubstr("f:4: port: there is no value"),
                  HasSubstr("f:5: port: a quote is not closed"), HasSubstr("f:6: port: '2' stands"),
                  HasSubstr("f:7: port: a list is not closed"), HasSubstr("f:8: port: '2' stands"),
                  HasSubstr("f:10: port stands in line 9 already")));
}

TEST(ConfigFile, AFileThatIsNotThereIsAProblem) {
  std::vector<std::string> problems;
  EXPECT_TRUE(ReadConfig("/no/such/file", &problems).empty());
  EXPECT_THAT(problems, ElementsAre("--config /no/such/file: No such file or directory"));
}

}  // namespace
}  // namespace quire
