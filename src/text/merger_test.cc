#include "text/merger.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <utility>

namespace quire {
namespace {

using Rules = std::map<std::pair<int32_t, int32_t>, Merge>;

Merge FindIn(const Rules& rules, const Unit& left, const Unit& right) {
  const auto rule = rules.find({left.symbol, right.symbol});
  return rule == rules.end() ? Merge() : rule->second;
}

// The rule in its plainest form.
void ReferenceMerge(const Rules& rules, std::vector<Unit>* units) {
  while (true) {
    size_t best = 0;
    Merge merge;
    for (size_t i = 0; i + 1 < units->size(); ++i) {
      const Merge found = FindIn(rules, (*units)[i], (*units)[i + 1]);
      if (found.rank < merge.rank) {
        best = i;
        merge = found;
      }
    }
    if (merge.rank == Merge::kNoRank) return;
    (*units)[best].length += (*units)[best + 1].length;
    (*units)[best].symbol = merge.symbol;
    units->erase(units->begin() + static_cast<ptrdiff_t>(best) + 1);
  }
}

// Few symbols and many rules that share ranks: stale pairs and ties at every turn.
TEST(Merger, GivesWhatTheReferenceGivesForShortAndLongPieces) {
  Merger merger;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const int num_symbols = 2 + static_cast<int>(random() % 6);
    Rules rules;
    for (int i = 0; i < 20; ++i) {
      const auto any = [&] { return static_cast<int32_t>(random() % (2 * num_symbols)); };
      rules[{any(), any()}] = {static_cast<uint32_t>(random() % 8), any()};
    }
    std::vector<Unit> units(random() % 200);
    for (uint32_t i = 0; i < units.size(); ++i) {
      units[i] = {i, 1, static_cast<int32_t>(random() % num_symbols)};
    }
    std::vector<Unit> expected = units;
    ReferenceMerge(rules, &expected);
    merger.Run([&](const Unit& l, const Unit& r) { return FindIn(rules, l, r); }, &units);
    ASSERT_EQ(units.size(), expected.size());
    for (size_t i = 0; i < units.size(); ++i) {
      EXPECT_EQ(units[i].begin, expected[i].begin);
      EXPECT_EQ(units[i].length, expected[i].length);
      EXPECT_EQ(units[i].symbol, expected[i].symbol);
    }
  }
}

TEST(Merger, LeavesNothingOfNothing) {
  Merger merger;
  std::vector<Unit> units;
  merger.Run([](const Unit&, const Unit&) { return Merge{0, 0}; }, &units);
  EXPECT_TRUE(units.empty());
}

}  // namespace
}  // namespace quire
