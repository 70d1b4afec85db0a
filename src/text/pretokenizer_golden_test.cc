// Where another implementation of regular expressions cuts: tools/make_split_goldens.py made
// tests/data/tokenizer/splits.json with Python's regex module and says how its texts are made.
#include <gtest/gtest.h>

#include <iomanip>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/fnv.h"
#include "base/test_data.h"
#include "text/pretokenizer.h"
#include "text/pretokenizer_patterns.h"

namespace quire {
namespace {

using nlohmann::json;

json Goldens() { return json::parse(ReadTestFile(TestData("tokenizer/splits.json"))); }

std::string RandomText(const std::vector<std::string>& common, const std::vector<std::string>& rare,
                       uint64_t seed, int num_atoms) {
  const auto draw = [&](size_t size) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 33) % size;
  };
  std::string text;
  for (int i = 0; i < num_atoms; ++i) {
    const auto& atoms = draw(3) != 0 ? common : rare;
    text += atoms[draw(atoms.size())];
  }
  return text;
}

std::string Digest(const Pretokenizer& pretokenizer, std::string_view text) {
  auto matcher = Pretokenizer::Matcher::Create();
  EXPECT_TRUE(matcher.ok());
  uint64_t value = kFnvStart;
  uint32_t end = 0;
  const Status status = pretokenizer.Split(text, &*matcher, [&](std::string_view piece) {
    end += static_cast<uint32_t>(piece.size());
    for (int shift = 0; shift < 32; shift += 8) {
      value = FnvStep(value, end >> shift & 0xFF);
    }
  });
  EXPECT_TRUE(status.ok()) << status.message();
  std::ostringstream hex;
  hex << std::hex << std::setw(16) << std::setfill('0') << value;
  return hex.str();
}

TEST(PretokenizerGoldens, EveryRuleCutsAsTheOtherImplementationDoes) {
  const json goldens = Goldens();
  for (const auto& [name, splits] : goldens["splits"].items()) {
    const auto pretokenizer = Pretokenizer::Create(name);
    ASSERT_TRUE(pretokenizer.ok()) << pretokenizer.status().message();
    auto matcher = Pretokenizer::Matcher::Create();
    ASSERT_TRUE(matcher.ok());
    for (size_t i = 0; i < splits.size(); ++i) {
      const std::string text = goldens["texts"][i];
      std::string lengths, pieces;
      const Status status = pretokenizer->Split(text, &*matcher, [&](std::string_view piece) {
        if (!lengths.empty()) lengths += ' ';
        lengths += std::to_string(piece.size());
        pieces.append("[").append(piece).append("]");
      });
      ASSERT_TRUE(status.ok()) << status.message();
      EXPECT_EQ(lengths, splits[i].get<std::string>()) << name << ", text " << i << ": " << pieces;
    }
  }
}

// A rule that no golden covers is a rule that nobody checked.
TEST(PretokenizerGoldens, EveryNameHasTheRuleOfAGolden) {
  const json goldens = Goldens();
  std::map<const void*, std::string> covered;
  for (const auto& [name, splits] : goldens["splits"].items()) {
    covered[FindPretokenizerRule(name)->stages.data()] = name;
  }
  std::istringstream names(PretokenizerNames());
  for (std::string name; std::getline(names >> std::ws, name, ',');) {
    EXPECT_TRUE(covered.contains(FindPretokenizerRule(name)->stages.data())) << name;
  }
}

TEST(PretokenizerGoldens, LongTextsHaveTheDigestsOfTheOtherImplementation) {
  const json goldens = Goldens();
  for (const json& item : goldens["long"]) {
    std::string text;
    if (item.contains("seed")) {
      text = RandomText(goldens["common"], goldens["rare"], item["seed"], item["num_atoms"]);
    } else {
      const auto path = SharedData(item["file"]);
      if (!path) GTEST_SKIP() << "no shared data";
      text = ReadTestFile(*path);
    }
    for (const auto& [name, digest] : item["digests"].items()) {
      const auto pretokenizer = Pretokenizer::Create(name);
      ASSERT_TRUE(pretokenizer.ok());
      EXPECT_EQ(Digest(*pretokenizer, text), digest.get<std::string>())
          << name << " over " << item.value("file", "random atoms");
    }
  }
}

}  // namespace
}  // namespace quire
