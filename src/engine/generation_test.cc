#include "engine/generation.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/test_data.h"

namespace quire {
namespace {

// A model of ids only.
struct Small {
  std::unique_ptr<Engine> engine;

  explicit Small(EngineOptions options = {}) : engine(Load(options)) {}

  static std::unique_ptr<Engine> Load(EngineOptions options) {
    options.num_threads = 1;
    auto engine = Engine::Load(TestData("models/llama-gqa.gguf"), options, {});
    EXPECT_TRUE(engine.ok()) << engine.status().message();
    return std::move(engine).value();
  }

  StatusOr<Generation> Ask(std::vector<TokenId> prompt, uint32_t max_tokens,
                           const std::atomic<bool>* cancelled = nullptr) {
    GenerationParams params;
    params.sampling.temperature = 0;
    params.max_tokens = max_tokens;
    return Generate(*engine, prompt, params, {}, cancelled);
  }
};

TEST(Generation, WhatTheSequenceHoldsOfThePromptIsNotComputedAgain) {
  Small small;
  auto first = small.Ask({1, 2, 3, 4}, 5);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(first->ids.size(), 5u);
  EXPECT_EQ(first->num_cached, 0u);
  std::vector<TokenId> next = {1, 2, 3, 4};
  next.insert(next.end(), first->ids.begin(), first->ids.end());
  next.push_back(9);
  auto second = small.Ask(next, 5);
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second->num_cached, 8u);  // the last id of the answer was never computed
  EXPECT_EQ(second->ids, Small().Ask(next, 5)->ids);
}

TEST(Generation, TheLastPromptTokenIsAlwaysComputed) {
  Small small;
  const std::vector<TokenId> prompt(64, 7);  // a page
  const auto first = small.Ask(prompt, 3);
  const auto again = small.Ask(prompt, 3);
  ASSERT_TRUE(first.ok() && again.ok());
  EXPECT_EQ(again->num_cached, 63u);
  EXPECT_EQ(again->ids, first->ids);
}

TEST(Generation, AFullContextAndFullMemoryEndTheAnswerAndKeepIt) {
  Small context({.context_len = 10});
  auto answer = context.Ask({1, 2, 3}, 0);
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->finish_reason, FinishReason::kContextFull);
  EXPECT_EQ(answer->ids.size(), 8u);  // 3 + 7 computed, and one more from their logits

  Small memory({.kv_memory_bytes = 80 << 10});  // two pages of 64 tokens
  answer = memory.Ask({1, 2, 3}, 0);
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->finish_reason, FinishReason::kMemoryFull);
  EXPECT_EQ(answer->ids.size(), 126u);
}

TEST(Generation, CancelledBeforeTheFirstTokenIsAnEmptyAnswer) {
  Small small;
  const std::atomic<bool> cancelled = true;
  const auto answer = small.Ask({1, 2, 3}, 5, &cancelled);
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->finish_reason, FinishReason::kCancelled);
  EXPECT_TRUE(answer->ids.empty());
}

// PFX-03, on ids: the random numbers know the position only, not what was computed.
TEST(Generation, ASeededAnswerIsTheSameColdAndFromCachedPages) {
  Small small;
  GenerationParams params;
  params.sampling = {.temperature = 0.8f, .frequency_penalty = 0.5f, .seed = 7};
  params.max_tokens = 40;
  const std::vector<TokenId> prompt(64, 8);
  const auto ask = [&] { return Generate(*small.engine, prompt, params, {}).value(); };
  const Generation cold = ask(), hit = ask();
  EXPECT_EQ(cold.num_cached, 0u);
  EXPECT_EQ(hit.num_cached, 63u);
  EXPECT_EQ(hit.ids, cold.ids);
  params.sampling.seed = 8;
  EXPECT_NE(ask().ids, cold.ids);
}

TEST(Generation, AStopTokenEndsTheAnswerButNotBeforeMinTokens) {
  Small small;
  const auto ask = [&](const SamplingParams& sampling) {
    GenerationParams params{.sampling = sampling, .max_tokens = 12};
    params.sampling.temperature = 0;
    const std::vector<TokenId> prompt = {5, 6, 7};
    return Generate(*small.engine, prompt, params, {});
  };
  const Generation free = ask({.top_logprobs = 2}).value();
  ASSERT_EQ(free.logprobs.size(), 12u);
  for (size_t i = 0; i < 12; ++i) {
    EXPECT_EQ(free.logprobs[i].top[0].id, free.ids[i]);
    EXPECT_EQ(free.logprobs[i].top[0].logprob, free.logprobs[i].sampled);
  }
  const TokenId stop = free.ids[4];
  const auto first = std::find(free.ids.begin(), free.ids.end(), stop) - free.ids.begin();
  const Generation stopped = ask({.stop_tokens = {stop}}).value();
  EXPECT_EQ(stopped.ids, std::vector<TokenId>(free.ids.begin(), free.ids.begin() + first));
  EXPECT_EQ(stopped.finish_reason, FinishReason::kStopToken);
  EXPECT_EQ(stopped.stop_token, stop);
  const Generation later = ask({.min_tokens = 12, .stop_tokens = {stop}}).value();
  EXPECT_EQ(later.finish_reason, FinishReason::kMaxTokens);
  EXPECT_EQ(std::count(later.ids.begin(), later.ids.end(), stop), 0);

  const Generation soonest =
      ask({.logit_bias = {{stop, 100}}, .min_tokens = 3, .stop_tokens = {stop}}).value();
  EXPECT_EQ(soonest.ids.size(), 3u);

  EXPECT_EQ(ask({.min_tokens = 13}).status().message(),
            "min_tokens 13: need at most max_tokens, 12");
  EXPECT_EQ(ask({.stop_strings = {"x"}}).status().code(), StatusCode::kInvalidArgument);
  const auto vocab = small.engine->model().shape().num_tokens;
  EXPECT_EQ(ask({.stop_tokens = {static_cast<TokenId>(vocab)}}).status().code(),
            StatusCode::kInvalidArgument);
}

TEST(Generation, AnEmptyPromptIsAnError) {
  Small small;
  EXPECT_EQ(small.Ask({}, 5).status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace quire
