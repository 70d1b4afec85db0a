// Renders of Python's Jinja2, byte for byte. See tools/make_template_goldens.py.
#include <gtest/gtest.h>

#include <fstream>
#include <optional>
#include <sstream>
#include <string>

#include "base/test_data.h"
#include "text/chat_template.h"

namespace quire {
namespace {

using Json = nlohmann::ordered_json;

std::optional<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// 29 November 2026, a Sunday, 23:59: the goldens' clock.
std::tm GoldenTime() {
  std::tm time{};
  time.tm_year = 126;
  time.tm_mon = 10;
  time.tm_mday = 29;
  time.tm_hour = 23;
  time.tm_min = 59;
  time.tm_wday = 0;
  time.tm_yday = 332;
  return time;
}

class TemplateGoldenTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::optional<std::string> text = ReadFile(TestData("templates/goldens.json"));
    ASSERT_TRUE(text.has_value());
    goldens_ = Json::parse(*text);
  }

  // The template's text, from this checkout or from the shared data.
  static std::optional<std::string> Source(const std::string& name) {
    if (auto own = ReadFile(TestData("templates/" + name))) return own;
    const std::optional<std::string> shared = SharedData("templates/" + name);
    return shared.has_value() ? ReadFile(*shared) : std::nullopt;
  }

  void ExpectAllCases(const std::string& name, const std::string& source) {
    const StatusOr<ChatTemplate> parsed = ChatTemplate::Parse(source);
    ASSERT_TRUE(parsed.ok()) << name << ": " << parsed.status().message();
    for (const auto& [case_name, result] : goldens_["goldens"][name].items()) {
      SCOPED_TRACE(name + ": " + case_name);
      const Json& input = goldens_["cases"][case_name];
      const Json& golden = goldens_["results"][result.get<size_t>()];
      const StatusOr<RenderedChat> chat =
          parsed.value().Render(input["messages"], input["extra"], GoldenTime());
      if (golden.is_string()) {
        ASSERT_TRUE(chat.ok()) << chat.status().message();
        EXPECT_EQ(chat->text, golden.get<std::string>());
      } else {
        ASSERT_FALSE(chat.ok()) << chat->text;
        if (golden.contains("error")) {
          EXPECT_EQ(chat.status().message(), golden["error"].get<std::string>());
        }
      }
      ++num_compared_;
    }
  }

  Json goldens_;
  int num_compared_ = 0;
};

TEST_F(TemplateGoldenTest, EveryTemplateRendersAsJinja2Does) {
  int num_missing = 0;
  for (const auto& [name, cases] : goldens_["goldens"].items()) {
    if (const std::optional<std::string> source = Source(name)) {
      ExpectAllCases(name, *source);
    } else {
      ++num_missing;
    }
  }
  EXPECT_GT(num_compared_, 0);
  RecordProperty("compared", num_compared_);
  if (num_missing > 0) GTEST_SKIP() << num_missing << " templates need ../shared/data/templates";
}

}  // namespace
}  // namespace quire
