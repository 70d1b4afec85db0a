#include "engine/stop_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace quire {
namespace {

// The reference: the whole text at once, searched with std::string::find.
struct Cut {
  size_t end = 0;                  // of the shown text
  std::optional<uint32_t> string;  // nothing: not cut
};

// A stop string counts only if its last byte is at `first_end` - 1 or later.
Cut CutWhole(const std::string& text, const SamplingParams& params, size_t first_end) {
  Cut cut{.end = text.size(), .string = {}};
  size_t best_end = text.size() + 1, best_len = 0;
  for (size_t i = 0; i < params.stop_strings.size(); ++i) {
    const std::string& stop = params.stop_strings[i];
    size_t begin = text.find(stop);
    while (begin != std::string::npos && begin + stop.size() < first_end)
      begin = text.find(stop, begin + 1);
    if (begin == std::string::npos) continue;
    const size_t end = begin + stop.size();
    if (end > best_end || (end == best_end && stop.size() <= best_len)) continue;
    best_end = end;
    best_len = stop.size();
    cut = {.end = params.include_stop_string ? end : begin, .string = static_cast<uint32_t>(i)};
  }
  return cut;
}

// The shown text may end here while the text goes on: no longer tail begins a stop string.
size_t HeldTail(const std::string& text, const std::vector<std::string>& stops) {
  size_t longest = 0;
  for (const std::string& stop : stops)
    for (size_t length = longest + 1; length < stop.size() && length <= text.size(); ++length)
      if (text.ends_with(stop.substr(0, length))) longest = length;
  return longest;
}

std::string RandomText(std::mt19937& random, size_t length, int num_letters) {
  std::string text;
  for (size_t i = 0; i < length; ++i) text += static_cast<char>('a' + random() % num_letters);
  return text;
}

SamplingParams Stops(std::vector<std::string> strings) {
  SamplingParams params;
  params.stop_strings = std::move(strings);
  return params;
}

// Few letters and short stop strings: matches, overlaps and near misses are common.
TEST(StopText, ShownTextIsTheWholeTextCutOnceForAnyCutsAndStopStrings) {
  int num_stopped = 0, num_not = 0, num_after_min = 0;
  for (uint32_t seed = 0; seed < 20000; ++seed) {
    std::mt19937 random(seed);
    const int num_letters = 1 + static_cast<int>(random() % 4);
    SamplingParams params;
    for (uint32_t i = random() % 6; i > 0; --i)
      params.stop_strings.push_back(RandomText(random, 1 + random() % 7, num_letters));
    params.include_stop_string = random() % 2 == 0;
    params.min_tokens = random() % 3 == 0 ? random() % 12 : 0;

    std::vector<std::string> pieces;
    for (uint32_t i = random() % 30; i > 0; --i)
      pieces.push_back(RandomText(random, random() % 5, num_letters));
    const std::string last = RandomText(random, random() % 3, num_letters);
    std::string whole;
    size_t first_end = 0;  // stop strings that end up to here are plain text
    for (size_t i = 0; i < pieces.size(); ++i) {
      if (i + 1 < params.min_tokens) first_end = whole.size() + pieces[i].size() + 1;
      whole += pieces[i];
    }
    if (pieces.size() < params.min_tokens) first_end = whole.size() + last.size() + 1;
    whole += last;
    const Cut expected = CutWhole(whole, params, first_end);

    StopText stop_text(params);
    std::string shown, pushed;
    for (const std::string& piece : pieces) {
      shown += stop_text.Push(piece);
      pushed += piece;
      if (stop_text.stopped()) break;
      ASSERT_EQ(shown, pushed.substr(0, pushed.size() - HeldTail(pushed, params.stop_strings)))
          << "seed " << seed;
    }
    if (!stop_text.stopped()) shown += stop_text.Finish(last);
    ASSERT_EQ(shown, whole.substr(0, expected.end)) << "seed " << seed;
    ASSERT_EQ(stop_text.stop_index(), expected.string) << "seed " << seed;
    ++(stop_text.stopped() ? num_stopped : num_not);
    num_after_min += stop_text.stopped() && params.min_tokens > 0;
  }
  // The cases are there.
  EXPECT_GT(num_stopped, 3000);
  EXPECT_GT(num_not, 3000);
  EXPECT_GT(num_after_min, 500);
}

// [begin, end) of each token's text; a token is out when its text is, or was cut in its middle.
TEST(StopText, TokensGoOutWithTheirText) {
  for (uint32_t seed = 0; seed < 5000; ++seed) {
    std::mt19937 random(seed);
    SamplingParams params = Stops({RandomText(random, 1 + random() % 5, 2), "ba"});
    params.include_stop_string = random() % 2 == 0;
    StopText stop_text(params);
    std::vector<size_t> begins, ends;
    size_t num_bytes = 0, num_shown = 0;
    const auto num_out = [&](bool is_cut) {
      size_t count = 0;
      while (count < ends.size() &&
             (ends[count] <= num_shown || (is_cut && begins[count] < num_shown)))
        ++count;
      return count;
    };
    for (int i = 0; i < 20 && !stop_text.stopped(); ++i) {
      const std::string piece = RandomText(random, random() % 4, 2);
      begins.push_back(num_bytes);
      ends.push_back(num_bytes += piece.size());
      num_shown += stop_text.Push(piece).size();
      ASSERT_EQ(stop_text.num_pushed(), ends.size());
      ASSERT_EQ(stop_text.num_released(), num_out(stop_text.stopped())) << "seed " << seed;
    }
    if (stop_text.stopped()) continue;
    stop_text.Finish("");
    ASSERT_EQ(stop_text.num_released(), ends.size());
  }
}

TEST(StopText, TheLongestTailThatBeginsAStopStringIsHeldAndFlushedAtTheEnd) {
  StopText stop_text(Stops({"<end>", "<|im"}));
  EXPECT_EQ(stop_text.Push("a <"), "a ");
  EXPECT_EQ(stop_text.num_released(), 0u);
  EXPECT_EQ(stop_text.Push("|"), "");
  EXPECT_EQ(stop_text.Push("i"), "");
  EXPECT_EQ(stop_text.Push("<e"), "<|i");
  EXPECT_EQ(stop_text.num_released(), 3u);
  EXPECT_EQ(stop_text.Finish(""), "<e");
  EXPECT_FALSE(stop_text.stopped());
  EXPECT_EQ(stop_text.num_released(), 4u);
}

TEST(StopText, AStopStringMayCrossTokensAndIsLeftInOnlyIfAsked) {
  for (const bool include : {false, true}) {
    SamplingParams params = Stops({"xyz", "STOP"});
    params.include_stop_string = include;
    StopText stop_text(params);
    EXPECT_EQ(stop_text.Push("go S"), "go ");
    EXPECT_EQ(stop_text.Push("TO"), "");
    EXPECT_EQ(stop_text.Push("P!"), include ? "STOP" : "");
    EXPECT_EQ(stop_text.stop_index(), 1u);
    EXPECT_EQ(stop_text.num_released(), include ? 3u : 1u);  // the first is cut in its middle
  }
}

TEST(StopText, OfStopStringsThatEndTogetherTheLongestCuts) {
  StopText stop_text(Stops({"c", "abc", "bc"}));
  EXPECT_EQ(stop_text.Push("xabc"), "x");
  EXPECT_EQ(stop_text.stop_index(), 1u);
}

TEST(StopText, BeforeMinTokensAStopStringIsText) {
  SamplingParams params = Stops({"ab"});
  params.min_tokens = 3;
  StopText stop_text(params);
  EXPECT_EQ(stop_text.Push("ab"), "ab");
  EXPECT_EQ(stop_text.Push("a"), "");
  EXPECT_EQ(stop_text.Push("b"), "");  // complete with the third token
  EXPECT_TRUE(stop_text.stopped());
  EXPECT_EQ(stop_text.num_released(), 1u);
}

TEST(StopText, WhatTheDetokenizerHadAtTheEndMayCompleteAStopString) {
  StopText stop_text(Stops({"a\uFFFD"}));
  EXPECT_EQ(stop_text.Push("ba", /*inside_character=*/true), "b");
  EXPECT_EQ(stop_text.Finish("\uFFFD"), "");
  EXPECT_TRUE(stop_text.stopped());
  EXPECT_EQ(stop_text.num_released(), 1u);  // "b" is its text
}

// "é" in two tokens: the first has no text of its own and goes with the character.
TEST(StopText, ATokenThatBeginsACharacterGoesWithIt) {
  StopText dropped(Stops({"é"}));
  EXPECT_EQ(dropped.Push("a"), "a");
  EXPECT_EQ(dropped.Push("", true), "");
  EXPECT_EQ(dropped.num_released(), 1u);
  EXPECT_EQ(dropped.Push("é"), "");
  EXPECT_TRUE(dropped.stopped());
  EXPECT_EQ(dropped.num_released(), 1u);

  StopText shown(Stops({"x"}));
  EXPECT_EQ(shown.Push("", true), "");
  EXPECT_EQ(shown.num_released(), 0u);
  EXPECT_EQ(shown.Push("é"), "é");
  EXPECT_EQ(shown.num_released(), 2u);
  EXPECT_EQ(shown.Push("", true), "");
  EXPECT_EQ(shown.Finish("\uFFFD"), "\uFFFD");
  EXPECT_EQ(shown.num_released(), 3u);
}

// The first byte of "é" begins "è" too; nothing but whole characters comes out.
TEST(StopText, WholeCharactersStayWhole) {
  StopText stop_text(Stops({"è!"}));
  EXPECT_EQ(stop_text.Push("é"), "é");
  EXPECT_EQ(stop_text.Push("aè"), "a");
  EXPECT_EQ(stop_text.Push("é"), "èé");
}

TEST(StopText, WithoutStopStringsAllTextPasses) {
  StopText stop_text(SamplingParams{});
  EXPECT_EQ(stop_text.Push("abc"), "abc");
  EXPECT_EQ(stop_text.Push(""), "");
  EXPECT_EQ(stop_text.Finish("d"), "d");
  EXPECT_EQ(stop_text.num_released(), 2u);
}

// The worst of its kind: each byte falls back through the whole pattern, if the matcher did not
// amortise. A quadratic one takes 16 * 256 steps a byte here: many seconds.
TEST(StopText, TheLongestStopStringsAndALongTextTakeLinearTime) {
  std::vector<std::string> stops;
  for (size_t i = 0; i < SamplingParams::kMaxStopStrings; ++i)
    stops.push_back(std::string(255 - i, 'a') + "b");
  StopText stop_text(Stops(stops));
  const std::string piece(1000, 'a');
  size_t num_shown = 0;
  for (int i = 0; i < 1000; ++i) num_shown += stop_text.Push(piece).size();
  EXPECT_EQ(num_shown, 1000u * 1000 - 255);
  EXPECT_EQ(stop_text.Push("b"), "");
  EXPECT_EQ(stop_text.stop_index(), 0u);
}

}  // namespace
}  // namespace quire
