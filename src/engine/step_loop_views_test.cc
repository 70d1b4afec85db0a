// What the engine tells of itself: counters, live requests, health.
#include <gtest/gtest.h>

#include <chrono>
#include <numeric>
#include <thread>

#include "engine/test_engine.h"
#include "engine/test_loop.h"

namespace quire {
namespace {

TEST(Histogram, CountsValuesUpToEachBound) {
  Histogram<kStepTokensBounds> histogram;
  for (const double value : {1.0, 2.0, 8.0, 9.0, 20000.0}) histogram.Add(value);
  EXPECT_EQ(histogram.counts[0], 1u);      // <= 1
  EXPECT_EQ(histogram.counts[1], 2u);      // <= 8
  EXPECT_EQ(histogram.counts[2], 1u);      // <= 16
  EXPECT_EQ(histogram.counts.back(), 1u);  // above all
  EXPECT_EQ(histogram.num_values(), 5u);
  EXPECT_EQ(histogram.sum, 20020.0);
}

// API-17.
TEST(EngineStats, APreemptedRequestIsCountedOnce) {
  Loop loop({.token_budget = 32});
  const auto answer = loop.Add({.prompt = Tokens(100)}, 4);
  loop.steps->Step();
  loop.steps->Step();
  EXPECT_EQ(loop.stats().prompt_tokens, 0u);  // not done
  loop.steps->PreemptAll();
  while (answer->tokens(0).empty()) loop.steps->Step();
  loop.steps->PreemptAll();
  loop.RunUntilEnd(*answer);
  const EngineStats stats = loop.stats();
  EXPECT_EQ(stats.num_preemptions, 2u);
  EXPECT_EQ(stats.prompt_tokens, 100u);
  EXPECT_EQ(stats.cached_prompt_tokens, 0u);  // its own pages are no hit
  EXPECT_EQ(stats.computed_prompt_tokens, 100u);
  EXPECT_EQ(stats.matches.num_matches, 1u);
  EXPECT_EQ(stats.matches.queried_tokens, 100u);
  EXPECT_EQ(stats.matches.matched_tokens, 0u);
  EXPECT_EQ(stats.num_finished, 1u);
  EXPECT_EQ(answer->prompt().num_cached, 0u);
}

TEST(EngineStats, WhatAnotherComputedMeanwhileIsCached) {
  Loop loop({.token_budget = 32});
  const auto first = loop.Add({.prompt = Tokens(100)}, 1),
             second = loop.Add({.prompt = Tokens(100)}, 1);
  loop.RunUntilEnd(*first);
  loop.RunUntilEnd(*second);
  const EngineStats stats = loop.stats();
  EXPECT_EQ(stats.prompt_tokens, 200u);
  EXPECT_EQ(stats.cached_prompt_tokens + stats.computed_prompt_tokens, stats.prompt_tokens);
  EXPECT_EQ(first->prompt().num_cached, 0u);
  EXPECT_GE(second->prompt().num_cached, 96u);
  EXPECT_EQ(second->prompt().num_inserted, 0u);
}

// Two prompts that part in the middle of a page: what the second takes from the cache and what it
// brings into it are different tokens, wherever they part.
TEST(EngineStats, CachedAndInsertedTokensOfAPromptAreDifferentOnes) {
  for (uint32_t parts_at = 1; parts_at < 70; ++parts_at) {
    Loop loop({.token_budget = 32});
    std::vector<TokenId> prompt = Tokens(parts_at);
    loop.RunUntilEnd(*loop.Add({.prompt = prompt}, 1));
    for (uint32_t i = 0; i < 40; ++i) prompt.push_back(static_cast<TokenId>(200 - i));
    const auto second = loop.Add({.prompt = prompt}, 1);
    loop.RunUntilEnd(*second);
    const PromptReport& report = second->prompt();
    EXPECT_EQ(report.num_cached, parts_at);
    EXPECT_EQ(report.num_cached + report.num_inserted, prompt.size() / 16 * 16) << parts_at;
    EXPECT_EQ(loop.stats().computed_prompt_tokens, prompt.size());
  }
}

TEST(EngineStats, TheHistogramsHaveEachStepThatComputed) {
  Loop loop({.token_budget = 32});
  loop.RunUntilEnd(*loop.Add({.prompt = Tokens(100)}, 3));
  const EngineStats stats = loop.stats();
  EXPECT_EQ(stats.step_tokens.num_values(), 6u);  // 32, 32, 32, 4, then two decodes
  EXPECT_EQ(stats.step_tokens.sum, 102.0);
  EXPECT_EQ(stats.step_tokens.counts[0], 2u);
  EXPECT_EQ(stats.step_seconds.num_values(), 6u);
  EXPECT_GE(stats.step_seconds.sum, stats.forward_seconds);
}

TEST(EngineStats, ThoseThatWaitAreDeferredOrHaveNoRoom) {
  Loop loop({.token_budget = 32, .max_seqs = 2});
  const auto first = loop.Add({.prompt = Tokens(100)}, 50);
  loop.Add({.prompt = Tokens(100)}, 50);
  loop.steps->Step();
  EXPECT_EQ(loop.stats().num_running, 1u);
  EXPECT_EQ(loop.stats().num_waiting, 1u);
  EXPECT_EQ(loop.stats().num_deferred, 1u);  // until the first has the page
  loop.Add({.prompt = Tokens(100, 2)}, 50);
  loop.Add({.prompt = Tokens(100, 3)}, 50);
  while (first->tokens(0).size() < 10) loop.steps->Step();
  EXPECT_EQ(loop.stats().num_running, 2u);
  EXPECT_EQ(loop.stats().num_waiting, 2u);
  EXPECT_EQ(loop.stats().num_deferred, 0u);
}

TEST(LiveRequests, AreListedWithWhatTheyHold) {
  Loop loop({.max_seqs = 4});
  Request request{.prompt = Tokens(40), .num_choices = 3, .priority = 2};
  request.tenant = "t";
  request.label = "req-1";
  const auto first = loop.Add(request, 30);
  const auto second = loop.Add({.prompt = Tokens(30, 2)}, 30);
  const auto third = loop.Add({.prompt = Tokens(20, 3)}, 30);
  for (int i = 0; i < 3; ++i) loop.steps->Step();
  const std::vector<RequestInfo> infos = loop.steps->requests();
  ASSERT_EQ(infos.size(), 3u);
  EXPECT_EQ(infos[0].id, first->id());
  EXPECT_EQ(infos[0].label, "req-1");
  EXPECT_EQ(infos[0].tenant, "t");
  EXPECT_EQ(infos[0].priority, 2);
  EXPECT_EQ(infos[0].num_choices, 3u);
  uint64_t held_bytes = 0, num_running = 0, num_generated = 0;
  for (const RequestInfo& info : infos) {
    held_bytes += info.held_bytes;
    num_running += info.num_running;
    num_generated += info.num_generated;
    EXPECT_EQ(info.held_pages > 0, info.num_running > 0);
    EXPECT_GE(info.seconds, 0);
    EXPECT_EQ(info.phase, info.num_generated > 0 ? AnswerPhase::kDecode : AnswerPhase::kPrefill);
    EXPECT_EQ(info.num_prompt_computed, info.prompt_len);
  }
  EXPECT_EQ(held_bytes, loop.stats().kv_held_bytes);  // they share no page
  EXPECT_EQ(num_running, loop.stats().num_running);
  EXPECT_EQ(num_generated, loop.stats().generated_tokens);

  EXPECT_TRUE(loop.steps->Abort(first->id()));
  loop.steps->Step();
  EXPECT_EQ(first->phase(), AnswerPhase::kEnded);
  EXPECT_FALSE(loop.steps->Abort(first->id()));
  EXPECT_EQ(loop.steps->requests().size(), 2u);
}

TEST(EngineHealth, AHangShowsAndIdlenessDoesNot) {
  auto engine = LoadSmall();
  AnswerOf(*engine, GreedyRequest(Tokens(20), 3));
  engine->Ask([](StepLoop&) {});
  for (int i = 0; i < 1000 && engine->stalled_seconds() > 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(engine->stalled_seconds(), 0);
  double seen = 0;
  engine->Ask([&](StepLoop&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    seen = engine->stalled_seconds();
  });
  EXPECT_GE(seen, 0.05);
  const auto answer = Submit(*engine, GreedyRequest(Tokens(20), 2000));
  answer->Wait(0, 200);
  EXPECT_LT(engine->stalled_seconds(), 0.05);  // many steps, each short
  EXPECT_TRUE(engine->Abort(answer->id()));
  answer->Wait(0, UINT32_MAX);
  EXPECT_EQ(answer->finish_reason(0), FinishReason::kCancelled);
  EXPECT_FALSE(engine->Abort(answer->id()));
  EXPECT_TRUE(engine->requests().empty());
}

// STR-09: what the server's test of such an error needs.
TEST(EngineHealth, ATestMayAskForAFailureAfterSomeTokens) {
  EngineOptions options = SmallOptions();
  options.fail_after_tokens = 5;
  auto engine = LoadSmall(options);
  const auto answer = Submit(*engine, GreedyRequest(Tokens(20), 9));
  EXPECT_EQ(answer->Wait(0, UINT32_MAX), 5u);
  EXPECT_EQ(answer->finish_reason(0), FinishReason::kError);
  EXPECT_EQ(answer->status(0).code(), StatusCode::kInternal);
  EXPECT_EQ(engine->stats().num_failed, 1u);
  EXPECT_EQ(AnswerOf(*engine, GreedyRequest(Tokens(20), 4)).ids.size(), 4u);  // the engine goes on
}

}  // namespace
}  // namespace quire
