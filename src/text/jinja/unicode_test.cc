#include "text/jinja/unicode.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace quire::jinja {
namespace {

TEST(UnicodeTest, WalkingBackFindsTheStartsThatWalkingForwardFinds) {
  for (const std::string_view text :
       {std::string_view("aé€🙂b"), std::string_view("\xA9\xE2\x82 \xF0\x9F\x99"),
        std::string_view("\xC3\xA9\xA9\xC3"), std::string_view("\xED\xA0\x80\xC0\x80")}) {
    std::vector<size_t> forward, back;
    for (size_t at = 0; at < text.size(); at += Decode(text, at).length) forward.push_back(at);
    for (size_t end = text.size(); end > 0; end = PreviousStart(text, end)) {
      back.insert(back.begin(), PreviousStart(text, end));
    }
    EXPECT_EQ(back, forward);
  }
}

TEST(UnicodeTest, WhiteSpaceOfSeveralBytesIsFoundAtBothEnds) {
  const std::string text = "\u3000\u00A0x\u2028\u3000";
  EXPECT_EQ(SkipSpace(text, 0), 5u);
  EXPECT_EQ(TrailingSpaceStart(text, 0), 6u);
}

TEST(UnicodeTest, InvalidBytesAreCopiedAsTheyAre) {
  std::string out;
  AppendUpper(Decode("\xFF", 0).value, &out);
  EXPECT_EQ(out, "\xFF");
}

TEST(UnicodeTest, CaseFollowsTheWholeTable) {
  std::string out;
  for (const char* c : {"ß", "é", "я", "ǆ", "a"}) AppendUpper(Decode(c, 0).value, &out);
  EXPECT_EQ(out, "SSÉЯǄA");
  out.clear();
  for (const char* c : {"É", "Я", "İ", "Z", "1"}) AppendLower(Decode(c, 0).value, &out);
  EXPECT_EQ(out, "éяi̇z1");
}

}  // namespace
}  // namespace quire::jinja
