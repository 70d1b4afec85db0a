#include "cli/serve_bench/prompt_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "base/errors.h"

namespace quire {
namespace {

TEST(PromptSet, RandomPromptsShareTheirPrefixAndNothingElse) {
  const auto prompts = RandomPrompts(
      {.num_requests = 4, .prompt_len = {8, 8}, .output_len = {3, 3}, .shared_prefix = 5}, 100,
      /*as_ids=*/true);
  ASSERT_EQ(prompts.size(), 4u);
  for (const BenchPrompt& prompt : prompts) {
    ASSERT_EQ(prompt.prompt.size(), 13u);
    EXPECT_EQ(prompt.output_len, 3u);
    EXPECT_TRUE(
        std::equal(prompt.prompt.begin(), prompt.prompt.begin() + 5, prompts[0].prompt.begin()));
    for (const auto& id : prompt.prompt) EXPECT_LT(id.get<int>(), 100);
  }
  EXPECT_NE(prompts[0].prompt[5], prompts[1].prompt[5]);
}

TEST(PromptSet, ATextHasAWordForEachToken) {
  const auto prompts =
      RandomPrompts({.num_requests = 1, .prompt_len = {20, 20}}, 49152, /*as_ids=*/false);
  const std::string text = prompts[0].prompt;
  EXPECT_EQ(std::count(text.begin(), text.end(), ' '), 20);
}

class ShareGpt : public testing::Test {
 protected:
  void Write(const std::string& text) { std::ofstream(path_) << text; }
  void TearDown() override { std::remove(path_.c_str()); }

  StatusOr<std::vector<BenchPrompt>> Read(uint32_t output_len, uint32_t max_len) {
    return ShareGptPrompts({.path = path_,
                            .num_requests = 10,
                            .output_len = output_len,
                            .max_len = max_len,
                            .count_tokens = [](const std::string& text) -> StatusOr<uint32_t> {
                              if (text == "refuse") return InvalidArgument("no /tokenize");
                              return static_cast<uint32_t>(text.size());
                            }});
  }

  const std::string path_ = testing::TempDir() + "sharegpt.json";
};

TEST_F(ShareGpt, AsksTheFirstTurnForAsLongAsItsAnswer) {
  Write(R"([{"conversations": [{"from": "human", "value": "ab"}, {"from": "gpt", "value": "xyz"}]},
            {"conversations": [{"from": "human", "value": "alone"}]}, {"id": 3}, 7])");
  const auto prompts = Read(0, 0);
  ASSERT_TRUE(prompts.ok()) << prompts.status().message();
  ASSERT_EQ(prompts->size(), 1u);
  EXPECT_EQ(prompts->front().prompt, "ab");
  EXPECT_EQ(prompts->front().output_len, 3u);
  EXPECT_EQ(Read(9, 0)->front().output_len, 9u);
  EXPECT_EQ(Read(0, 5)->size(), 1u);
  EXPECT_FALSE(Read(0, 4).ok());
}

TEST_F(ShareGpt, SaysWhatIsWrongWithAFile) {
  EXPECT_EQ(Read(1, 0).status().code(), StatusCode::kNotFound);
  for (const char* text : {"", "{}", "[", "[]", R"([{"conversations": [1, 2]}])"}) {
    Write(text);
    EXPECT_EQ(Read(1, 0).status().code(), StatusCode::kInvalidFile) << text;
  }
  Write(R"([{"conversations": [{"value": "ab"}, {"value": "refuse"}]}])");
  EXPECT_EQ(Read(0, 0).status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace quire
