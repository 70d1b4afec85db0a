#include "server/api/json_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>

namespace quire {
namespace {

std::string StringOf(std::string_view text) {
  std::string json;
  AppendJsonString(json, text);
  return json;
}

std::string NumberOf(double value) {
  std::string json;
  AppendJsonNumber(json, value);
  return json;
}

std::string Utf8Of(uint32_t code_point) {
  const auto tail = [&](int shift) { return static_cast<char>(0x80 | (code_point >> shift & 63)); };
  if (code_point < 0x80) return {static_cast<char>(code_point)};
  if (code_point < 0x800) return {static_cast<char>(0xC0 | code_point >> 6), tail(0)};
  if (code_point < 0x10000) return {static_cast<char>(0xE0 | code_point >> 12), tail(6), tail(0)};
  return {static_cast<char>(0xF0 | code_point >> 18), tail(12), tail(6), tail(0)};
}

TEST(JsonText, EveryCodePointComesBackFromAnAsciiString) {
  constexpr uint32_t kBlock = 4096;
  for (uint32_t begin = 0; begin < 0x110000; begin += kBlock) {
    std::string text;
    size_t count = 0;
    for (uint32_t code_point = begin; code_point < begin + kBlock; ++code_point) {
      if (code_point >= 0xD800 && code_point < 0xE000) continue;
      text += Utf8Of(code_point);
      ++count;
    }
    const std::string json = StringOf(text);
    EXPECT_TRUE(std::ranges::all_of(json, [](char c) { return c >= 0x20 && c < 0x7F; })) << begin;
    EXPECT_EQ(nlohmann::json::parse(json).get<std::string>(), text) << begin;
    EXPECT_EQ(NumCodePoints(text), count);
  }
}

TEST(JsonText, AnyBytesAreWrittenAsNlohmannReplacesThem) {
  std::mt19937 random(7);
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (size_t length = random() % 12; text.size() < length;) {
      static constexpr unsigned char kOften[] = {0x41, 0x80, 0xBF, 0xC3, 0xE2,
                                                 0xED, 0xF0, 0xF4, 0xA0};
      text += static_cast<char>(random() % 2 ? random() % 256 : kOften[random() % 9]);
    }
    const auto same = nlohmann::json(text).dump(-1, ' ', /*ensure_ascii=*/true,
                                                nlohmann::json::error_handler_t::replace);
    EXPECT_EQ(nlohmann::json::parse(StringOf(text)), nlohmann::json::parse(same)) << round;
  }
}

TEST(JsonText, LinesThatSomeClientsCutAtAreEscaped) {
  EXPECT_EQ(StringOf("a\u0085\u2028\u2029\n"), R"("a\u0085\u2028\u2029\n")");
}

TEST(JsonText, NumbersComeBackAndAreNeverInfinite) {
  EXPECT_EQ(NumberOf(0), "0.0");
  EXPECT_EQ(NumberOf(-1.5), "-1.5");
  EXPECT_EQ(NumberOf(-std::numeric_limits<double>::infinity()), "-9999.0");
  EXPECT_EQ(NumberOf(std::numeric_limits<double>::infinity()), "0.0");
  EXPECT_EQ(NumberOf(std::numeric_limits<double>::quiet_NaN()), "0.0");
  for (const double value : {-1e-300, 1e300, -0.1, 123456789.125, 1e22}) {
    EXPECT_EQ(nlohmann::json::parse(NumberOf(value)).get<double>(), value);
    EXPECT_TRUE(nlohmann::json::parse(NumberOf(value)).is_number_float());
  }
}

}  // namespace
}  // namespace quire
