#include "cli/position_bits.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace quire {
namespace {

std::vector<PositionBits> Rows(const std::vector<std::vector<float>>& logits) {
  std::vector<PositionBits> rows;
  for (const auto& row : logits)
    rows.push_back(BitsOf(static_cast<uint32_t>(rows.size()), row, 3, 1));
  return rows;
}

TEST(PositionBits, TheLastBitOfAnyLogitIsADifference) {
  const std::vector<std::vector<float>> logits = {{1, 2, 3, 0}, {4, 5, 6, 0}, {7, 8, 9, 0}};
  const auto want = Rows(logits);
  EXPECT_EQ(FirstDifference(want, want), "");
  for (size_t row = 0; row < 3; ++row)
    for (size_t i = 0; i < 4; ++i) {  // the padding counts too
      auto other = logits;
      other[row][i] = std::nextafter(other[row][i], 100.0f);
      const std::string found = FirstDifference(want, Rows(other));
      EXPECT_NE(found.find("position " + std::to_string(row)), std::string::npos) << found;
    }
}

TEST(PositionBits, ANegativeZeroAndASwapAreDifferences) {
  const auto want = Rows({{0, 1, 2, 3}});
  EXPECT_NE(FirstDifference(want, Rows({{-0.0f, 1, 2, 3}})), "");
  EXPECT_NE(FirstDifference(want, Rows({{1, 0, 2, 3}})), "");
}

TEST(PositionBits, APartIsComparedAtItsPositions) {
  const auto want = Rows({{1, 2, 3, 0}, {4, 5, 6, 0}});
  EXPECT_EQ(FirstDifference(want, std::vector<PositionBits>{want[1]}), "");
  PositionBits wrong = want[0];
  wrong.position = 1;
  EXPECT_NE(FirstDifference(want, std::vector<PositionBits>{wrong}), "");
}

TEST(PositionBits, NanIsToldAndEqualsItself) {
  const auto rows = Rows({{1, std::numeric_limits<float>::quiet_NaN(), 3, 0}});
  EXPECT_TRUE(std::isnan(rows[0].logprob));
  EXPECT_EQ(FirstDifference(rows, rows), "");
}

TEST(AnswerBits, IdsLogprobsAndLengthAreCompared) {
  const AnswerBits want = {{3, 4}, {-1.5, -2.5}, {10, 11}};
  EXPECT_EQ(FirstDifference(want, want), "");
  EXPECT_EQ(FirstDifference(want, {{3, 5}, {-1.5, -2.5}, {10, 11}}),
            "token 1 of the answer is 5 in place of 4");
  EXPECT_NE(FirstDifference(want, {{3, 4}, {-1.5, std::nextafter(-2.5, 0)}, {10, 11}}), "");
  EXPECT_NE(FirstDifference(want, {{3, 4}, {-1.5, -2.5}, {10, 12}}), "");
  const AnswerBits shorter = {{3}, {-1.5}, {10}};
  EXPECT_NE(FirstDifference(want, shorter), "");
  EXPECT_NE(FirstDifference(shorter, want), "");
}

}  // namespace
}  // namespace quire
