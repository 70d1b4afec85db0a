#include "text/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace quire {
namespace {

TEST(Utf8, WholeCharactersAreValidAtEveryBorderOfTheRange) {
  for (const std::string& character :
       {std::string(1, '\0'), std::string("a"), std::string("\x7F"), std::string("\xC2\x80"),
        std::string("\xDF\xBF"), std::string("\xE0\xA0\x80"), std::string("\xED\x9F\xBF"),
        std::string("\xEE\x80\x80"), std::string("\xEF\xBF\xBF"), std::string("\xF0\x90\x80\x80"),
        std::string("\xF4\x8F\xBF\xBF")}) {
    const Utf8Step step = NextUtf8(character + "x");
    EXPECT_TRUE(step.valid);
    EXPECT_EQ(step.length, character.size());
    for (size_t cut = 1; cut < character.size(); ++cut) {
      const Utf8Step start = NextUtf8(std::string_view(character).substr(0, cut));
      EXPECT_FALSE(start.valid);
      EXPECT_TRUE(start.incomplete);
      EXPECT_EQ(start.length, cut);
    }
  }
}

TEST(Utf8, AnErrorIsTheLongestStartThatTheNextByteBreaks) {
  struct Case {
    const char* bytes;
    size_t length;
  };
  for (const Case& c : {Case{"\x80", 1}, Case{"\xC0\x80", 1}, Case{"\xC1\xBF", 1}, Case{"\xC3(", 1},
                        Case{"\xE0\x80\x80", 1}, Case{"\xED\xA0\x80", 1}, Case{"\xE4\xB8x", 2},
                        Case{"\xF0\x9F\x92x", 3}, Case{"\xF0\x80\x80\x80", 1},
                        Case{"\xF4\x90\x80\x80", 1}, Case{"\xF5\x80", 1}, Case{"\xFF", 1}}) {
    const Utf8Step step = NextUtf8(c.bytes);
    EXPECT_FALSE(step.valid);
    EXPECT_FALSE(step.incomplete);
    EXPECT_EQ(step.length, c.length) << c.bytes;
  }
}

TEST(Utf8, ValidAndInvalidRunsAlternate) {
  const std::string text = "twelve bytes\xC3\xA9\xC3(\x80\xFFok";
  EXPECT_EQ(ValidUtf8Length(text), 14u);
  EXPECT_EQ(InvalidUtf8Length(text.substr(14)), 1u);
  EXPECT_EQ(ValidUtf8Length(text.substr(15)), 1u);
  EXPECT_EQ(InvalidUtf8Length(text.substr(16)), 2u);
  EXPECT_EQ(InvalidUtf8Length("abc"), 0u);
  EXPECT_EQ(ValidUtf8Length(""), 0u);
}

}  // namespace
}  // namespace quire
