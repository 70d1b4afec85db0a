// What others see of requests while they wait, run and end: news, phases, and the limit of the
// queue.
#include <gtest/gtest.h>

#include <atomic>

#include "engine/test_engine.h"
#include "engine/test_loop.h"

namespace quire {
namespace {

// API-23.
TEST(EngineQueue, OverTheLimitIsRefusedAtOnceAndNobodyIsLost) {
  EngineOptions options = SmallOptions();
  options.max_queue = 4;
  auto engine = LoadSmall(options);
  std::vector<std::shared_ptr<Answer>> taken;
  uint32_t num_refused = 0;
  engine->Ask([&](StepLoop&) {  // none of them can start
    for (uint32_t i = 0; i < 10; ++i) {
      auto answer = engine->Submit(GreedyRequest(Tokens(20, i), 3));
      if (answer.ok()) {
        taken.push_back(std::move(answer).value());
        continue;
      }
      ++num_refused;
      EXPECT_EQ(answer.status().code(), StatusCode::kUnavailable);
      EXPECT_NE(answer.status().message().find("4 requests"), std::string::npos);
      EXPECT_NE(answer.status().message().find("--max-queue "), std::string::npos);
    }
  });
  EXPECT_EQ(taken.size(), 4u);
  EXPECT_EQ(num_refused, 6u);
  for (const auto& answer : taken) EXPECT_EQ(ResultOf(*answer).ids.size(), 3u);
  EXPECT_EQ(AnswerOf(*engine, GreedyRequest(Tokens(20), 3)).ids.size(), 3u);  // there is room again
  EXPECT_EQ(engine->stats().num_refused_for_requests, 6u);
}

TEST(EngineQueue, RequestsThatEndBeforeTheyStartLeaveIt) {
  EngineOptions options = SmallOptions();
  options.max_queue = 2;
  auto engine = LoadSmall(options);
  for (int round = 0; round < 3; ++round) {
    std::vector<std::shared_ptr<Answer>> answers;
    engine->Ask([&](StepLoop&) {
      for (uint32_t i = 0; i < 2; ++i) {
        answers.push_back(Submit(*engine, GreedyRequest(Tokens(20, i), 3)));
        engine->Abort(answers.back());
      }
    });
    for (const auto& answer : answers) {
      answer->Wait(0, UINT32_MAX);
      EXPECT_EQ(answer->phase(), AnswerPhase::kEnded);
    }
  }
}

TEST(EngineQueue, TokensThatWaitAreLimitedButOnePromptMayAlways) {
  EngineOptions options = SmallOptions();
  options.max_queue_tokens = 100;
  auto engine = LoadSmall(options);
  engine->Ask([&](StepLoop&) {
    EXPECT_TRUE(engine->Submit(GreedyRequest(Tokens(150), 1)).ok());
    const Status status = engine->Submit(GreedyRequest(Tokens(1), 1)).status();
    EXPECT_EQ(status.code(), StatusCode::kUnavailable);
    EXPECT_NE(status.message().find("--max-queue-tokens allows 100"), std::string::npos);
  });
  engine->Drain();
  engine->Ask([&](StepLoop&) {});
  EXPECT_EQ(engine->stats().num_refused_for_tokens, 1u);
}

TEST(AnswerNews, ComesOnceAStepForAllChoices) {
  Loop loop;
  std::atomic<uint32_t> num_news{0};
  Request request{.prompt = Tokens(20), .num_choices = 3};
  request.on_news = [&] { ++num_news; };
  const auto answer = loop.Add(request, 5);
  for (uint32_t step = 1; loop.steps->has_work(); ++step) {
    loop.steps->Step();
    EXPECT_EQ(num_news, step);
  }
  EXPECT_EQ(num_news, 5u);
}

TEST(AnswerNews, TellsOfAnAbortBeforeTheNextStepComputes) {
  Loop loop;
  uint32_t num_news = 0;
  Request request{.prompt = Tokens(20)};
  request.on_news = [&] { ++num_news; };
  const auto answer = loop.Add(request, 100);
  for (int i = 0; i < 3; ++i) loop.steps->Step();
  answer->Abort();
  loop.steps->Step();
  EXPECT_EQ(num_news, 4u);
  EXPECT_EQ(answer->finish_reason(0), FinishReason::kCancelled);
  EXPECT_EQ(answer->tokens(0).size(), 3u);
}

TEST(AnswerPhase, GoesFromQueuedToEndedWithThePromptsProgress) {
  Loop loop({.token_budget = 32});
  const auto answer = loop.Add({.prompt = Tokens(80)}, 2);
  EXPECT_EQ(answer->phase(), AnswerPhase::kQueued);
  const std::pair<AnswerPhase, uint32_t> expected[] = {{AnswerPhase::kPrefill, 32},
                                                       {AnswerPhase::kPrefill, 64},
                                                       {AnswerPhase::kDecode, 80},
                                                       {AnswerPhase::kEnded, 80}};
  for (const auto& [phase, computed] : expected) {
    loop.steps->Step();
    EXPECT_EQ(answer->phase(), phase);
    EXPECT_EQ(answer->num_prompt_computed(), computed);
  }
  EXPECT_EQ(answer->prompt().num_inserted, 80u);
  // The second has them already, but for the last token's page, which it computes a copy of.
  const auto again = loop.Add({.prompt = Tokens(80)}, 2);
  loop.RunUntilEnd(*again);
  EXPECT_EQ(again->prompt().num_cached, 79u);
  EXPECT_EQ(again->prompt().num_inserted, 0u);
  EXPECT_EQ(again->num_prompt_computed(), 80u);
}

TEST(AnswerPhase, APreemptedPromptIsComputedAgainWithoutAFallBackToQueued) {
  Loop loop({.token_budget = 32});
  const auto answer = loop.Add({.prompt = Tokens(100)}, 2);
  for (int i = 0; i < 2; ++i) loop.steps->Step();
  loop.steps->PreemptAll();
  EXPECT_EQ(answer->phase(), AnswerPhase::kPrefill);
  EXPECT_EQ(answer->num_prompt_computed(), 0u);
  loop.RunUntilEnd(*answer);
  EXPECT_EQ(answer->prompt().num_inserted, 96u);
  EXPECT_EQ(answer->prompt().num_cached, 0u);  // at its first start
}

}  // namespace
}  // namespace quire
