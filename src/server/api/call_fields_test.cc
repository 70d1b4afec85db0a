// Every field of the table with values that must be refused, and with values that must be taken.
#include "server/api/call_fields.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "server/api/call_reader.h"
#include "server/api/test_served_model.h"

namespace quire {
namespace {

constexpr ApiForm kForms[] = {ApiForm::kChat, ApiForm::kCompletions};

// What a field needs beside it to be taken.
const std::map<std::string_view, std::string> kCompanions = {
    {"top_logprobs", R"("logprobs":true)"},
    {"stream_options", R"("stream":true)"},
    {"min_tokens", R"("max_tokens":2147483647)"},
};

// The body with one field of that JSON text.
std::string BodyWith(ApiForm form, std::string_view name, std::string_view value) {
  std::string body = fmt::format("{{\"{}\":{}", name, value);
  if (form == ApiForm::kChat && name != "messages")
    body += R"(,"messages":[{"role":"assistant","content":"he"}])";
  if (form == ApiForm::kCompletions && name != "prompt") body += R"(,"prompt":"he")";
  if (const auto companion = kCompanions.find(name); companion != kCompanions.end())
    body += "," + companion->second;
  return body + "}";
}

std::string ListOf(size_t count, std::string_view item) {
  std::string list = "[";
  for (size_t i = 0; i < count; ++i) list += (i ? "," : "") + std::string(item);
  return list + "]";
}

std::string TextOf(size_t num_bytes) { return '"' + std::string(num_bytes, 'x') + '"'; }

std::string BiasOf(size_t count) {
  std::string object = "{";
  for (size_t i = 0; i < count; ++i) object += (i ? ",\"" : "\"") + std::to_string(i) + "\":1";
  return object + "}";
}

// JSON texts of wrong types; numbers that are none.
std::vector<std::string> WrongTypes(FieldKind kind) {
  switch (kind) {
    case FieldKind::kBool:
      return {"0", "1", "\"true\"", "[]", "{}", "\"NaN\"", "NaN", "1e999"};
    case FieldKind::kInteger:
      return {"\"1\"", "true", "[]", "[1]", "{}", "0.5", "\"NaN\"", "NaN", "-Infinity", "1e999"};
    case FieldKind::kNumber:
      return {"\"1\"", "true", "[]", "{}", "\"NaN\"", "NaN", "1e999", "-1e999"};
    case FieldKind::kString:
    case FieldKind::kChoice:
      return {"1", "true", "[]", "{}", "[\"a\"]", "NaN", "1e999"};
    case FieldKind::kStrings:
      return {"1", "true", "{}", "[1]", "[\"a\",null]", "[[\"a\"]]", "NaN", "[1e999]"};
    case FieldKind::kIds:
      return {"1",      "\"1\"",  "{}",        "[\"1\"]", "[true]", "[0.5]",  "[-1]",
              "[null]", "[1e30]", "[\"NaN\"]", "NaN",     "[NaN]",  "[1e999]"};
    case FieldKind::kTokenBias:
      return {"1",           "\"1\"",         "[]",           "{\"1\":\"1\"}", "{\"1\":null}",
              "{\"x\":1}",   "{\"-1\":1}",    "{\"01\":1}",   "{\"1.0\":1}",   "{\"\":1}",
              "{\"1\":NaN}", "{\"1\":1e999}", "{\"1\":true}", "{\" 1\":1}",    "[[1,1]]"};
    case FieldKind::kObject:
      return {"1", "\"{}\"", "[]", "true", "NaN", "1e999"};
    case FieldKind::kList:
      return {"1", "\"[]\"", "{}", "true", "NaN", "1e999"};
    case FieldKind::kPrompt:
      return {"1",         "true",      "{}",     "[true]",   "[{}]",    "[null]",
              "[\"a\",1]", "[1,\"a\"]", "[1,[]]", "[[[]]]",   "[[0.5]]", "[[1],\"a\"]",
              "NaN",       "[NaN]",     "1e999",  "[[1e999]]"};
    case FieldKind::kMessages:
      return {"1", "\"a\"", "{}", "true", "[1]", "[null]", "[[]]", "NaN", "1e999"};
    case FieldKind::kAny:
      return {"{\"x\":1}", "12345", "NaN", "1e999"};
  }
  return {};
}

// Below, above and far above the range.
std::vector<std::string> OutOfRange(const ApiField& field) {
  const auto most = static_cast<size_t>(field.most);
  switch (field.kind) {
    case FieldKind::kInteger: {
      std::vector<std::string> values = {"9223372036854775808", "18446744073709551616",
                                         "-9223372036854775809", "1e30", "-1e300"};
      if (field.most > 9e18) return values;
      values.push_back(fmt::format("{:.0f}", field.least - 1));
      values.push_back(fmt::format("{:.0f}", field.most + 1));
      values.push_back("-9223372036854775808");
      values.push_back("9223372036854775807");
      return values;
    }
    case FieldKind::kNumber:
      if (field.least > 0) return {"0", "-1", "1e-60", "1e39", "1e300"};
      return {fmt::format("{}", field.least - 0.001),
              fmt::format("{}", field.most + 0.001),
              "1e300",
              "-1e300",
              "-2147483648",
              "9223372036854775808"};
    case FieldKind::kString: {
      std::vector<std::string> values = {TextOf(most + 1)};
      if (field.least > 0) values.push_back("\"\"");
      return values;
    }
    case FieldKind::kChoice:
      return {"\"\"", "\"none medium\"", "\"NONE\"", TextOf(100'000)};
    case FieldKind::kStrings:
      return {"\"\"", "[\"\"]", TextOf(257), ListOf(most + 1, "\"a\""), "[" + TextOf(257) + "]"};
    case FieldKind::kIds: {
      std::vector<std::string> values = {"[268]", "[2147483648]", "[-2147483648]"};
      if (most < 100'000) values.push_back(ListOf(most + 1, "1"));
      return values;
    }
    case FieldKind::kTokenBias:
      return {BiasOf(1025), "{\"268\":1}", "{\"99999999999999999999\":1}", "{\"1\":100.5}",
              "{\"1\":-101}"};
    case FieldKind::kPrompt:
      return {"[]", "[[]]", "[268]", "[[-1]]", ListOf(1025, "\"a\""), ListOf(1025, "[1]")};
    case FieldKind::kMessages:
      return {"[]", ListOf(10001, "{}"), "[{}]"};
    default:
      return {};
  }
}

// Whether the error says that this field, or a part of it, is at fault.
bool Names(const ApiError& error, std::string_view name) {
  if (!error.param.starts_with(name)) return false;
  const std::string_view rest = std::string_view(error.param).substr(name.size());
  return rest.empty() || rest[0] == '.' || rest[0] == '[';
}

class EachField : public ::testing::Test {
 protected:
  ApiResult<GenerationCall> Read(ApiForm form, const std::string& body) {
    return form == ApiForm::kChat ? ReadChatCall(body, served_.model())
                                  : ReadCompletionCall(body, served_.model());
  }
  template <class Check>
  void ForEachField(const Check& check) {
    for (const ApiField& field : ApiFields())
      for (const ApiForm form : kForms)
        if (field.IsIn(form)) check(field, form);
  }
  TestServedModel served_;
};

TEST_F(EachField, OfAWrongTypeOrOutOfRangeIsA400WithItsName) {
  ASSERT_EQ(served_.model().vocab_size, 268U);  // of OutOfRange
  int num_checked = 0;
  ForEachField([&](const ApiField& field, ApiForm form) {
    std::vector<std::string> values = WrongTypes(field.kind);
    for (const std::string& value : OutOfRange(field)) values.push_back(value);
    ASSERT_FALSE(values.empty());
    for (const std::string& value : values) {
      const auto call = Read(form, BodyWith(form, field.name, value));
      ASSERT_FALSE(call.ok()) << field.name << ": " << value.substr(0, 100);
      EXPECT_EQ(call.error().status, 400) << field.name << ": " << value.substr(0, 100);
      EXPECT_TRUE(Names(call.error(), field.name))
          << field.name << ": " << value.substr(0, 100) << ": param " << call.error().param;
      EXPECT_LT(call.error().message.size(), 1024U);
      EXPECT_FALSE(call.error().message.empty());
      ++num_checked;
    }
  });
  EXPECT_GT(num_checked, 800);
}

TEST_F(EachField, NullIsAsIfItWereNotThere) {
  ForEachField([&](const ApiField& field, ApiForm form) {
    if (field.kind == FieldKind::kPrompt || field.kind == FieldKind::kMessages) return;
    const auto call = Read(form, BodyWith(form, field.name, "null"));
    EXPECT_TRUE(call.ok()) << field.name << ": " << call.error().message;
  });
}

TEST_F(EachField, AtTheEndsOfItsRangeIsTaken) {
  ForEachField([&](const ApiField& field, ApiForm form) {
    if (field.effect == FieldEffect::kRefused || field.name == "model" ||
        field.name == "chat_template")
      return;
    std::vector<std::string> values;
    switch (field.kind) {
      case FieldKind::kBool:
        values = {"true", "false"};
        break;
      case FieldKind::kInteger:
        values = {"9223372036854775807", "-9223372036854775808", "-1", "0"};
        if (field.most < 9e18)
          values = {fmt::format("{:.0f}", field.least), fmt::format("{:.0f}", field.most),
                    fmt::format("{:.1f}", field.least), fmt::format("{:.0f}.0", field.most)};
        break;
      case FieldKind::kNumber:
        values = {"1", "1.0"};
        if (field.least <= 0)
          values = {fmt::format("{}", field.least), fmt::format("{}", field.most)};
        break;
      case FieldKind::kString:
        values = {TextOf(static_cast<size_t>(std::max(field.least, 1.0))),
                  TextOf(static_cast<size_t>(field.most))};
        break;
      case FieldKind::kChoice:
        values = {'"' + std::string(field.values.substr(0, field.values.find(' '))) + '"'};
        break;
      case FieldKind::kStrings:
        values = {"[]", "\"a\"", TextOf(256), ListOf(16, TextOf(256))};
        break;
      case FieldKind::kIds:
        values = {"[]", "[0]", "[267]", "[1.0]"};
        break;
      case FieldKind::kTokenBias:
        values = {"{}", "{\"0\":-100,\"267\":100}"};
        break;
      case FieldKind::kObject:
        values = {"{}"};
        break;
      case FieldKind::kPrompt:
        values = {"\"a\"", "[\"a\",\"b\"]", ListOf(1024, "[1]"), "[1]"};
        break;
      default:
        break;
    }
    if (field.name == "best_of") values = {"1", "128"};
    for (const std::string& value : values) {
      const auto call = Read(form, BodyWith(form, field.name, value));
      EXPECT_TRUE(call.ok()) << field.name << ": " << value.substr(0, 100) << ": "
                             << call.error().message;
      EXPECT_TRUE(!call.ok() || call.value().ignored_fields.empty()) << field.name;
    }
  });
}

TEST_F(EachField, ThatIsRefusedTakesItsNeutralValues) {
  int num_refused = 0;
  ForEachField([&](const ApiField& field, ApiForm form) {
    if (field.effect != FieldEffect::kRefused) return;
    const auto neutral = nlohmann::ordered_json::parse(field.values);
    for (const auto& value : neutral) {
      const auto call = Read(form, BodyWith(form, field.name, value.dump()));
      EXPECT_TRUE(call.ok()) << field.name << ": " << value << ": " << call.error().message;
    }
    const auto call = Read(form, BodyWith(form, field.name, "[{\"x\":1}]"));
    ASSERT_FALSE(call.ok());
    EXPECT_EQ(call.error().param, field.name);
    ++num_refused;
  });
  EXPECT_GT(num_refused, 60);
}

// SEC-01: an integer field never takes a negative number that its range doesn't have; a field that
// nobody knows is named.
TEST_F(EachField, ThatNobodyKnowsIsNamedOrRefused) {
  const auto call = Read(ApiForm::kCompletions, R"({"prompt":"he","n_discard":-5,"zz":null})");
  ASSERT_TRUE(call.ok());
  EXPECT_THAT(call.value().ignored_fields, ::testing::ElementsAre("n_discard", "zz"));
  served_.model().refuses_unknown_fields = true;
  const auto strict = Read(ApiForm::kCompletions, R"({"prompt":"he","n_discard":-5})");
  ASSERT_FALSE(strict.ok());
  EXPECT_EQ(strict.error().code, "unknown_parameter");
  EXPECT_EQ(strict.error().param, "n_discard");
}

// They go out in a header.
TEST_F(EachField, ThatNobodyKnowsIsNamedInPrintableWords) {
  std::string body = R"({"prompt":"he","a\r\nset-cookie: x":1)";
  for (int i = 0; i < 100; ++i) body += fmt::format(",\"k{}\":1", i);
  const auto call = Read(ApiForm::kCompletions, body + "}");
  ASSERT_TRUE(call.ok());
  EXPECT_EQ(call.value().ignored_fields.size(), 32U);
  EXPECT_EQ(call.value().ignored_fields[0], "a\\x0D\\x0Aset-cookie: x");
}

TEST_F(EachField, OfTheOtherBodyIsRefusedUnlessItSaysNothing) {
  EXPECT_TRUE(Read(ApiForm::kChat, BodyWith(ApiForm::kChat, "echo", "false")).ok());
  EXPECT_TRUE(Read(ApiForm::kChat, BodyWith(ApiForm::kChat, "best_of", "null")).ok());
  EXPECT_FALSE(Read(ApiForm::kChat, BodyWith(ApiForm::kChat, "echo", "true")).ok());
  EXPECT_FALSE(Read(ApiForm::kChat, BodyWith(ApiForm::kChat, "prompt", "\"a\"")).ok());
  const ApiForm completions = ApiForm::kCompletions;
  EXPECT_TRUE(Read(completions, BodyWith(completions, "tools", "[]")).ok());
  EXPECT_TRUE(Read(completions, BodyWith(completions, "add_generation_prompt", "true")).ok());
  const auto call = Read(completions, BodyWith(completions, "messages", "[{}]"));
  ASSERT_FALSE(call.ok());
  EXPECT_EQ(call.error().param, "messages");
}

}  // namespace
}  // namespace quire
