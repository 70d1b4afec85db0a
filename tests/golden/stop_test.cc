// Answers of a trained model with stop strings and seeds: the text that a reader gets.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/test_data.h"
#include "engine/generation.h"
#include "reference/engine_fixture.h"
#include "text/detokenizer.h"

namespace quire {
namespace {

struct Stories {
  std::unique_ptr<Engine> engine;
  std::vector<TokenId> prompt;

  // Nothing without the shared data.
  static std::optional<Stories> Load() {
    const auto path = SharedData("models/stories260K/stories260K-f32.gguf");
    if (!path) return std::nullopt;
    Stories stories;
    stories.engine = LoadEngine(*path, ExactOptions());
    stories.prompt =
        stories.engine->tokenizer().Encode("Once upon a time", {.add_special = true}).value();
    return stories;
  }

  Generation Ask(const SamplingParams& sampling, std::string& streamed) const {
    streamed.clear();
    auto answer = Generate(*engine, prompt, {.sampling = sampling, .max_tokens = 120},
                           [&](std::string_view piece) { streamed += piece; });
    EXPECT_TRUE(answer.ok()) << answer.status().message();
    return std::move(answer).value();
  }
  Generation Ask(const SamplingParams& sampling) const {
    std::string streamed;
    Generation answer = Ask(sampling, streamed);
    EXPECT_EQ(streamed, answer.text);
    return answer;
  }
};

// Every stop string that the text of a free answer has: cut at its first place, wherever tokens
// begin.
TEST(Stop, AStopStringCutsTheAnswerAtItsFirstPlace) {
  const auto stories = Stories::Load();
  if (!stories) GTEST_SKIP() << "no shared data on this machine";
  const Generation free = stories->Ask({.temperature = 0});
  ASSERT_GT(free.text.size(), 100u);
  EXPECT_EQ(free.num_text_ids, free.ids.size());
  for (size_t begin = 0; begin < 60; begin += 7)
    for (const size_t length : {1, 3, 10}) {
      const std::string stop = free.text.substr(begin, length);
      const size_t cut = free.text.find(stop);
      for (const bool include : {false, true}) {
        const Generation answer = stories->Ask(
            {.temperature = 0, .stop_strings = {"#", stop}, .include_stop_string = include});
        EXPECT_EQ(answer.text, free.text.substr(0, include ? cut + stop.size() : cut)) << stop;
        EXPECT_EQ(answer.finish_reason, FinishReason::kStopString);
        EXPECT_EQ(answer.stop_string, 1u);
        ASSERT_LE(answer.ids.size(), free.ids.size());
        EXPECT_TRUE(std::equal(answer.ids.begin(), answer.ids.end(), free.ids.begin()));
        // The ids of the text give at least the text, without the last one less.
        const auto text_of = [&](size_t count) {
          return Decode(stories->engine->tokenizer(), std::span(answer.ids).first(count),
                        {.starts_text = false})
              .value();
        };
        EXPECT_TRUE(text_of(answer.num_text_ids).starts_with(answer.text));
        if (answer.num_text_ids > 0) {
          EXPECT_LT(text_of(answer.num_text_ids - 1).size(), answer.text.size());
        }
      }
    }
}

TEST(Stop, WhatIsHeldBackAtTheEndIsShown) {
  const auto stories = Stories::Load();
  if (!stories) GTEST_SKIP() << "no shared data on this machine";
  const Generation free = stories->Ask({.temperature = 0});
  const std::string tail = free.text.substr(free.text.size() - 5);
  const Generation answer = stories->Ask({.temperature = 0, .stop_strings = {tail + "#"}});
  EXPECT_EQ(answer.text, free.text);
  EXPECT_EQ(answer.finish_reason, free.finish_reason);
  EXPECT_EQ(answer.num_text_ids, answer.ids.size());
}

// PFX-03.
TEST(Stop, ASeededAnswerIsTheSameTextEachTime) {
  const auto stories = Stories::Load();
  if (!stories) GTEST_SKIP() << "no shared data on this machine";
  std::string streamed;
  const SamplingParams sampling{.temperature = 0.8f, .seed = 7};
  const Generation cold = stories->Ask(sampling, streamed);
  const Generation hit = stories->Ask(sampling, streamed);
  EXPECT_EQ(cold.num_cached, 0u);
  EXPECT_EQ(hit.num_cached, 0u);  // a page is longer than this prompt; hits: engine_test.cc
  EXPECT_GT(cold.text.size(), 100u);
  EXPECT_EQ(hit.text, cold.text);
}

// A bench asks for exactly so many tokens.
TEST(Stop, MinTokensHoldsTheEndBackAndIgnoreEosGoesOn) {
  const auto stories = Stories::Load();
  if (!stories) GTEST_SKIP() << "no shared data on this machine";
  SamplingParams sampling{.temperature = 0,
                          .logit_bias = {{*stories->engine->tokenizer().eos(), 100}}};
  EXPECT_TRUE(stories->Ask(sampling).ids.empty());
  sampling.min_tokens = 20;
  const Generation soonest = stories->Ask(sampling);
  EXPECT_EQ(soonest.ids.size(), 20u);
  EXPECT_EQ(soonest.finish_reason, FinishReason::kEndOfAnswer);
  EXPECT_EQ(soonest.stop_token, stories->engine->tokenizer().eos());
  sampling.ignore_eos = true;
  const Generation all = stories->Ask(sampling);
  EXPECT_EQ(all.ids.size(), 120u);
  EXPECT_EQ(all.finish_reason, FinishReason::kMaxTokens);
}

}  // namespace
}  // namespace quire
