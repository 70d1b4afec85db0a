// Small templates against Python's Jinja2. See tools/make_template_snippets.py.
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "base/test_data.h"
#include "text/chat_template.h"

namespace quire {
namespace {

using Json = nlohmann::ordered_json;

TEST(SnippetTest, EverySnippetRendersAsJinja2Does) {
  std::ifstream file(TestData("templates/snippets.json"));
  ASSERT_TRUE(file.good());
  const Json snippets = Json::parse(file);
  std::tm time{};  // 29 November 2026, a Sunday, 23:59
  time.tm_year = 126;
  time.tm_mon = 10;
  time.tm_mday = 29;
  time.tm_hour = 23;
  time.tm_min = 59;
  time.tm_yday = 332;
  for (const Json& row : snippets["rows"]) {
    const std::string source = row[0];
    SCOPED_TRACE(source);
    const StatusOr<ChatTemplate> parsed = ChatTemplate::Parse(source);
    if (!parsed.ok()) {
      ADD_FAILURE() << parsed.status().message();
      continue;
    }
    const StatusOr<RenderedChat> chat =
        parsed.value().Render(Json::array(), snippets["variables"], time);
    if (row[1].is_string()) {
      EXPECT_TRUE(chat.ok()) << chat.status().message();
      if (chat.ok()) {
        EXPECT_EQ(chat->text, row[1].get<std::string>());
      }
    } else {
      EXPECT_FALSE(chat.ok()) << chat->text;
      if (!chat.ok() && row[1].contains("error")) {
        EXPECT_EQ(chat.status().message(), row[1]["error"].get<std::string>());
      }
    }
  }
}

}  // namespace
}  // namespace quire
