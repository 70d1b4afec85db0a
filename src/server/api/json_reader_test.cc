#include "server/api/json_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

namespace quire {
namespace {

using ::testing::HasSubstr;

std::string Repeated(std::string_view text, size_t count) {
  std::string all;
  for (size_t i = 0; i < count; ++i) all += text;
  return all;
}

ApiError ErrorOf(const std::string& body) {
  const auto read = ReadJsonObject(body);
  EXPECT_FALSE(read.ok()) << body.substr(0, 100);
  return read.ok() ? ApiError() : read.error();
}

TEST(JsonReader, ReadsEveryKindOfValueInItsOrder) {
  const char body[] =
      R"({"z":null,"b":[true,false,-1,18446744073709551615,1.5,"\u00e9\ud83d\ude00\u0000"],"a":{}})";
  const auto read = ReadJsonObject(body);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read.value(), nlohmann::ordered_json::parse(body));
  EXPECT_EQ(read.value().begin().key(), "z");
}

TEST(JsonReader, OnlyOneWholeObjectIsTaken) {
  for (const char* body : {"",           " ",           "1",
                           "[]",         "[{}]",        "\"a\"",
                           "null",       "{",           "{}{}",
                           "{} x",       "{]",          "{\"a\":}",
                           "{\"a\" 1}",  "{'a':1}",     "{\"a\":1,}",
                           "\x00",       "{\"a\":01}",  "{\"a\":+1}",
                           "{\"a\":.5}", "{\"a\":NaN}", "{\"a\":Infinity}"}) {
    const ApiError error = ErrorOf(body);
    EXPECT_EQ(error.status, 400) << body;
    EXPECT_EQ(error.code, "invalid_json") << body;
  }
  EXPECT_TRUE(ReadJsonObject(" {} \n").ok());
  EXPECT_THAT(ErrorOf("{\"a\":[1,").message, HasSubstr("ends inside"));
}

// API-12
TEST(JsonReader, ALoneSurrogateIsRefusedWithItsPlace) {
  const ApiError high = ErrorOf(R"({"prompt":"\ud83d"})");
  EXPECT_THAT(high.message, HasSubstr("invalid unicode escape at byte 11"));
  EXPECT_EQ(high.param, "prompt");
  for (const char* text :
       {R"("\udc49x")", R"("\ud83dx")", R"("\ud83d\u0041")", R"("\ud83d\ud83d")"})
    EXPECT_THAT(ErrorOf(std::string("{\"a\":") + text + "}").message,
                HasSubstr("invalid unicode escape at byte"))
        << text;
  EXPECT_THAT(ErrorOf(R"({"\udc49":1})").message, HasSubstr("invalid unicode escape"));
}

TEST(JsonReader, IllFormedUtf8IsRefused) {
  for (const char* text : {"\xff", "\xc3", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "a\x80"})
    EXPECT_THAT(ErrorOf(std::string("{\"a\":\"") + text + "\"}").message, HasSubstr("not UTF-8"));
  EXPECT_EQ(ErrorOf("{\"a\":\"\x01\"}").code, "invalid_json");
}

TEST(JsonReader, ErrorsNameThePathOfTheValue) {
  EXPECT_EQ(ErrorOf(R"({"max_tokens":1e999})").param, "max_tokens");
  EXPECT_EQ(ErrorOf(R"({"max_tokens":1e999})").code, "invalid_value");
  EXPECT_EQ(ErrorOf(R"({"max_tokens":NaN})").param, "max_tokens");
  EXPECT_EQ(ErrorOf(R"({"messages":[{},{"content":[{"text":"\udc49"}]}]})").param,
            "messages[1].content[0].text");
  EXPECT_EQ(ErrorOf(R"({"a":[1,2,1e999]})").param, "a[2]");
  EXPECT_EQ(ErrorOf(R"({"a":[{"b":1,"c":2,"b":3}]})").param, "a[0].b");
  EXPECT_EQ(ErrorOf(R"({"n":1,"n":1})").param, "n");
}

TEST(JsonReader, DepthIsBoundedAt64) {
  const auto nested = [](size_t depth) {
    return "{\"a\":" + Repeated("[", depth - 1) + Repeated("]", depth - 1) + "}";
  };
  EXPECT_TRUE(ReadJsonObject(nested(64)).ok());
  EXPECT_THAT(ErrorOf(nested(65)).message, HasSubstr("64 levels"));
}

TEST(JsonReader, CountsAreBounded) {
  const auto keys = [](size_t count) {
    std::string body = "{";
    for (size_t i = 0; i < count; ++i) body += (i ? ",\"k" : "\"k") + std::to_string(i) + "\":0";
    return body + "}";
  };
  EXPECT_TRUE(ReadJsonObject(keys(1024)).ok());
  EXPECT_THAT(ErrorOf(keys(1025)).message, HasSubstr("1024 keys"));
  EXPECT_EQ(ErrorOf("{\"logit_bias\":" + keys(1025) + "}").param, "logit_bias");
  EXPECT_THAT(ErrorOf("{\"a\":[[]" + Repeated(",[]", 1 << 18) + "]}").message,
              HasSubstr("lists and objects"));
  EXPECT_THAT(ErrorOf("{\"a\":[0" + Repeated(",0", 1 << 22) + "]}").message, HasSubstr("values"));
}

// SEC-08
TEST(JsonReader, OddJsonIsRefusedQuickly) {
#ifdef QUIRE_SANITIZED
  constexpr double kMostSeconds = 2;
#else
  constexpr double kMostSeconds = 0.02;
#endif
  std::string many = "{\"k0\":0";
  for (int i = 1; i < 1'000'000; ++i) many += ",\"k" + std::to_string(i) + "\":0";
  const std::string twice = Repeated("{\"a\":1,\"a\":", 30) + "1" + Repeated("}", 30);
  for (const std::string& body :
       {"{\"a\":" + Repeated("[", 100'000), "{\"a\":" + Repeated("{\"a\":", 100'000), many + "}",
        twice, "{\"max_tokens\":" + Repeated("7", 100'000) + "}",
        "{\"max_tokens\":-" + Repeated("7", 100'000) + "}",
        "{\"max_tokens\":1e" + Repeated("7", 100'000) + "}"}) {
    double best = 1e9;
    for (int round = 0; round < 5; ++round) {
      const auto start = std::chrono::steady_clock::now();
      EXPECT_EQ(ErrorOf(body).status, 400);
      const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
      best = std::min(best, taken.count());
    }
    EXPECT_LT(best, kMostSeconds) << body.substr(0, 40);
  }
}

}  // namespace
}  // namespace quire
