// Templates and messages made to take for ever, or to crash (case TPL-08).
#include <gtest/gtest.h>

#include <string>

#include "text/chat_template.h"

namespace quire {
namespace {

using Json = nlohmann::ordered_json;

Status RenderStatus(const std::string& source, const std::string& content = "x") {
  const StatusOr<ChatTemplate> parsed = ChatTemplate::Parse(source);
  if (!parsed.ok()) return parsed.status();
  const Json messages = {{{"role", "user"}, {"content", content}}};
  return parsed.value().Render(messages, Json::object(), std::tm{}).status();
}

std::string Repeat(const std::string& text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += text;
  return result;
}

TEST(LimitsTest, EndlessTemplatesStop) {
  const std::string digits = "{% set r = range(1000) %}";
  for (const std::string& source : {
           digits + "{% for a in r %}{% for b in r %}{% for c in r %}{% endfor %}{% endfor %}{% "
                    "endfor %}",
           digits +
               "{% for a in r %}{% for b in r %}{% for c in r %}xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
               "{% endfor %}{% endfor %}{% endfor %}",
           std::string("{{ 'x' * 1000000000000 }}"),
           std::string("{{ [1] * 1000000000000 }}"),
           std::string("{{ [1] * 9223372036854775807 }}"),
           std::string("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"),
           std::string("{% macro m() %}{{ m() }}{{ m() }}{% endmacro %}{{ m() }}"),
           std::string("{{ range(1000000000) }}"),
           digits + "{% set ns = namespace(s='x') %}{% for a in r %}{% set ns.s = ns.s + ns.s %}{% "
                    "endfor %}",
           digits + "{% set ns = namespace(s=[1]) %}{% for a in r %}{% set ns.s = ns.s + ns.s %}{% "
                    "endfor %}",
           digits + "{% set ns = namespace(s='x') %}{% for a in r %}{% set ns.s = [ns.s, ns.s] %}"
                    "{% endfor %}{{ ns.s }}",
           std::string("{% set x = [] %}{% set _ = x.append(x) %}{{ x }}"),
           std::string("{% set x = [] %}{% set _ = x.append(x) %}{{ x | tojson }}"),
           std::string("{% set x = [] %}{% set _ = x.append(x) %}{% set y = [] %}"
                       "{% set _ = y.append(y) %}{{ x == y }}"),
           digits + "{% for a in r %}{% for b in r %}{{ 'x'.replace('', 'xxxxxxxxx' * 100) * 99 }}"
                    "{% endfor %}{% endfor %}",
       }) {
    SCOPED_TRACE(source);
    EXPECT_EQ(RenderStatus(source).code(), StatusCode::kResourceExhausted);
  }
}

TEST(LimitsTest, SearchInHostileTextStops) {
  const std::string content(1 << 20, 'a');
  for (const char* operation :
       {"m.rfind('a' * 500000)", "m.rsplit('a' * 500000)", "m.count('a' * 500000 + 'b')",
        "m.split('a')", "m.replace('a', m)", "m.replace('', m)", "(m[::-1] ~ m)[::2]|length",
        "m|list|sort|join", "m.split('a' * 500000 + 'b')", "m|tojson|tojson|tojson|length"}) {
    SCOPED_TRACE(operation);
    const std::string source =
        "{% set m = messages[0].content %}{% for i in range(10000) %}{% set x = " +
        std::string(operation) + " %}{% endfor %}";
    EXPECT_EQ(RenderStatus(source, content).code(), StatusCode::kResourceExhausted);
  }
}

TEST(LimitsTest, DeepNestingOfTheSourceIsRefused) {
  const int kDeep = 100'000;
  for (const std::string& source : {
           "{{ " + Repeat("(", kDeep) + "1" + Repeat(")", kDeep) + " }}",
           "{{ " + Repeat("[", kDeep) + Repeat("]", kDeep) + " }}",
           "{{ " + Repeat("{1:", kDeep) + "1" + Repeat("}", kDeep) + " }}",
           "{{ " + Repeat("not ", kDeep) + "1 }}",
           "{{ " + Repeat("- ", kDeep) + "1 }}",
           "{{ 1" + Repeat(" + 1", kDeep) + " }}",
           "{{ x" + Repeat(".x", kDeep) + " }}",
           "{{ x" + Repeat("[0]", kDeep) + " }}",
           "{{ x" + Repeat("()", kDeep) + " }}",
           "{{ x" + Repeat("|trim", kDeep) + " }}",
           "{{ x" + Repeat(" is defined", kDeep) + " }}",
           "{{ 1" + Repeat(" if 1 else 1", kDeep) + " }}",
           "{{ f" + Repeat("(f", kDeep) + Repeat(")", kDeep) + " }}",
           Repeat("{% if x %}", kDeep) + Repeat("{% endif %}", kDeep),
           Repeat("{% for x in y %}", kDeep) + Repeat("{% endfor %}", kDeep),
           Repeat("{% macro x() %}", kDeep) + Repeat("{% endmacro %}", kDeep),
           "{% for " + Repeat("(", kDeep) + "x" + Repeat(")", kDeep) + " in y %}{% endfor %}",
       }) {
    SCOPED_TRACE(source.substr(0, 40));
    EXPECT_EQ(RenderStatus(source).code(), StatusCode::kResourceExhausted);
  }
}

TEST(LimitsTest, DeepJsonIsRefused) {
  Json deep = "x";
  for (int i = 0; i < 10'000; ++i) deep = Json::array({std::move(deep)});
  const StatusOr<ChatTemplate> parsed = ChatTemplate::Parse("{{ x }}");
  ASSERT_TRUE(parsed.ok());
  const auto chat = parsed.value().Render(Json::array(), {{"x", std::move(deep)}}, std::tm{});
  EXPECT_EQ(chat.status().code(), StatusCode::kInvalidArgument);
}

TEST(LimitsTest, LongListOfNestedValuesIsFreedWithoutRecursion) {
  EXPECT_TRUE(
      RenderStatus("{% set ns = namespace(s=1) %}{% for a in range(1000) %}"
                   "{% for b in range(100) %}{% set ns.s = [ns.s] %}{% endfor %}{% endfor %}")
          .ok());
}

TEST(LimitsTest, LongConversationFits) {
  Json messages = Json::array();
  for (int i = 0; i < 2000; ++i) {
    messages.push_back(
        {{"role", i % 2 == 0 ? "user" : "assistant"}, {"content", std::string(1000, 'a')}});
  }
  const StatusOr<ChatTemplate> parsed = ChatTemplate::Parse(
      "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] | trim + "
      "'<|im_end|>\n' }}{% endfor %}");
  ASSERT_TRUE(parsed.ok());
  EXPECT_TRUE(parsed.value().Render(messages, Json::object(), std::tm{}).ok());
}

}  // namespace
}  // namespace quire
