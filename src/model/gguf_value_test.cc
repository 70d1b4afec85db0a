#include "model/gguf_value.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "model/gguf_header.h"
#include "model/gguf_writer.h"

namespace quire {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A header of keys only, with the bytes that it points into.
struct Parsed {
  explicit Parsed(const GgufWriter& writer) : bytes(writer.File()) {
    auto result = ParseGguf(bytes, bytes.size());
    EXPECT_TRUE(result.ok()) << result.status().message();
    header = *std::move(*result);
  }
  const GgufKey& Key(std::string_view name) const { return *header.FindKey(name); }

  Bytes bytes;
  GgufHeader header;
};

GgufWriter EveryType() {
  GgufWriter writer;
  writer.Set<uint8_t>("u8", 200)
      .Set<int8_t>("i8", -3)
      .Set<uint16_t>("u16", 60'000)
      .Set<int16_t>("i16", -300)
      .Set<uint32_t>("u32", 4'000'000'000u)
      .Set<int32_t>("i32", -70'000)
      .Set<uint64_t>("u64", std::numeric_limits<uint64_t>::max())
      .Set<int64_t>("i64", std::numeric_limits<int64_t>::min())
      .Set<float>("f32", 0.25f)
      .Set<double>("f64", -2.5)
      .Set<bool>("bool", true)
      .SetString("string", "text")
      .SetArray<int16_t>("i16s", {1, -2, 3})
      .SetArray<double>("f64s", {0.5, 1e300})
      .SetArray<float>("f32s", {1.5f, -2})
      .SetArray<uint64_t>("u64s", {7, uint64_t{1} << 63})
      .SetArray<uint8_t>("empty", {})
      .SetStrings("strings", {"", "a", "two words"});
  return writer;
}

TEST(GgufValue, EveryIntegerTypeIsAnInteger) {
  const Parsed parsed(EveryType());
  constexpr int64_t kLow = std::numeric_limits<int64_t>::min();
  constexpr int64_t kHigh = std::numeric_limits<int64_t>::max();
  const std::pair<const char*, int64_t> expected[] = {
      {"u8", 200},      {"i8", -3},   {"u16", 60'000}, {"i16", -300}, {"u32", 4'000'000'000},
      {"i32", -70'000}, {"i64", kLow}};
  for (const auto& [name, value] : expected) {
    const auto read = ReadInteger(parsed.Key(name), kLow, kHigh);
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(*read, value) << name;
  }
  for (const char* name : {"f32", "f64", "bool", "string", "i16s"}) {
    const auto read = ReadInteger(parsed.Key(name), kLow, kHigh);
    ASSERT_FALSE(read.ok()) << name;
    EXPECT_THAT(read.status().message(), AllOf(HasSubstr(name), HasSubstr("need an integer")));
  }
}

TEST(GgufValue, IntegersOutsideTheRangeAreNamed) {
  const Parsed parsed(EveryType());
  const auto large = ReadInteger(parsed.Key("u64"), 0, std::numeric_limits<int64_t>::max());
  ASSERT_FALSE(large.ok());
  EXPECT_THAT(large.status().message(), HasSubstr("key u64 is 18446744073709551615"));
  const auto low = ReadInteger(parsed.Key("i8"), 1, 7);
  ASSERT_FALSE(low.ok());
  EXPECT_EQ(low.status().message(), "key i8 is -3: need 1 to 7");
  EXPECT_EQ(low.status().code(), StatusCode::kInvalidFile);
}

TEST(GgufValue, NumbersAreF32OrF64AndFinite) {
  GgufWriter writer = EveryType();
  writer.Set<float>("nan", std::nanf("")).Set<double>("inf", HUGE_VAL);
  const Parsed parsed(writer);
  EXPECT_EQ(*ReadNumber(parsed.Key("f32")), 0.25);
  EXPECT_EQ(*ReadNumber(parsed.Key("f64")), -2.5);
  for (const char* name : {"nan", "inf", "u32", "bool", "f32s"}) {
    const auto read = ReadNumber(parsed.Key(name));
    ASSERT_FALSE(read.ok()) << name;
    EXPECT_THAT(read.status().message(), HasSubstr(name));
  }
}

TEST(GgufValue, OtherScalarsNeedTheirType) {
  const Parsed parsed(EveryType());
  EXPECT_TRUE(*ReadBool(parsed.Key("bool")));
  EXPECT_EQ(*ReadString(parsed.Key("string")), "text");
  EXPECT_EQ(ReadBool(parsed.Key("u8")).status().message(), "key u8: found u8, need bool");
  EXPECT_EQ(ReadString(parsed.Key("strings")).status().message(),
            "key strings: found array of 3 string, need string");
}

TEST(GgufValue, ArraysNeedTheirElementType) {
  const Parsed parsed(EveryType());
  EXPECT_EQ(*ReadIntegers(parsed.Key("i16s"), -10, 10), (std::vector<int32_t>{1, -2, 3}));
  EXPECT_EQ(*ReadFloats(parsed.Key("f32s")), (std::vector<float>{1.5f, -2}));
  EXPECT_EQ((*ReadFloats(parsed.Key("f64s")))[0], 0.5f);
  EXPECT_EQ(*ReadStrings(parsed.Key("strings")),
            (std::vector<std::string_view>{"", "a", "two words"}));
  EXPECT_TRUE(ReadIntegers(parsed.Key("empty"), 0, 0)->empty());

  EXPECT_EQ(ReadIntegers(parsed.Key("i16s"), 0, 10).status().message(),
            "key i16s: element 1 is -2: need 0 to 10");
  EXPECT_THAT(ReadIntegers(parsed.Key("u64s"), 0, 10).status().message(),
              HasSubstr("element 1 is 9223372036854775808"));
  EXPECT_EQ(ReadFloats(parsed.Key("i16s")).status().message(),
            "key i16s: found array of 3 i16, need an array of f32 or f64");
  EXPECT_FALSE(ReadIntegers(parsed.Key("f32s"), 0, 10).ok());
  EXPECT_FALSE(ReadIntegers(parsed.Key("u8"), 0, 255).ok());
  EXPECT_FALSE(ReadStrings(parsed.Key("string")).ok());
}

TEST(GgufValue, TextIsShortAndPrintable) {
  GgufWriter writer = EveryType();
  writer.SetString("evil", "\x1B[31m red")
      .SetArray<int32_t>("long", std::vector<int32_t>(500, 12345));
  const Parsed parsed(writer);
  EXPECT_EQ(GgufValueText(parsed.Key("evil")), "\\x1B[31m red");
  EXPECT_EQ(GgufValueText(parsed.Key("bool")), "true");
  EXPECT_EQ(GgufValueText(parsed.Key("i16s")), "[1, -2, 3]");
  EXPECT_EQ(GgufValueText(parsed.Key("strings")), "[\"\", \"a\", \"two words\"]");
  EXPECT_EQ(GgufValueText(parsed.Key("f64")), "-2.5");
  const std::string text = GgufValueText(parsed.Key("long"), 40);
  EXPECT_LT(text.size(), 60u);
  EXPECT_THAT(text, HasSubstr("..."));
}

TEST(GgufHeader, AbsentKeysGiveTheFallbackOrAnErrorThatNamesThem) {
  const Parsed parsed(EveryType());
  EXPECT_EQ(*parsed.header.GetIntegerOr("absent", 5, 0, 10), 5);
  EXPECT_EQ(*parsed.header.GetNumberOr("absent", 0.5), 0.5);
  EXPECT_EQ(*parsed.header.GetBoolOr("absent", true), true);
  EXPECT_EQ(*parsed.header.GetStringOr("absent", "x"), "x");
  EXPECT_FALSE(parsed.header.GetIntegerOr("f32", 5, 0, 10).ok())
      << "an ill-typed key is no absence";
  for (const Status& status :
       {parsed.header.GetInteger("absent", 0, 1).status(),
        parsed.header.GetNumber("absent").status(), parsed.header.GetBool("absent").status(),
        parsed.header.GetString("absent").status(),
        parsed.header.GetIntegers("absent", 0, 1).status(),
        parsed.header.GetFloats("absent").status(), parsed.header.GetStrings("absent").status()})
    EXPECT_EQ(status.message(), "key absent is missing");
}

}  // namespace
}  // namespace quire
