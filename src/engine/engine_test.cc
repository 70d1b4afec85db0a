#include "engine/engine.h"

#include <gtest/gtest.h>

#include "base/allocation_count.h"
#include "base/test_data.h"
#include "engine/test_engine.h"
#include "engine/test_models.h"

namespace quire {
namespace {

// MAT-14, PFX-01, PFX-02.
TEST(Engine, AnswersDoNotDependOnNeighboursOrOnTheCache) {
  const Result alone = AnswerOf(*LoadSmall(), GreedyRequest(Tokens(70), 40));
  ASSERT_EQ(alone.ids.size(), 40u);
  auto engine = LoadSmall();
  std::vector<std::shared_ptr<Answer>> same, others;
  for (uint32_t i = 0; i < 31; ++i) {
    others.push_back(Submit(*engine, GreedyRequest(Tokens(1 + i * 7, 100 + i), 1 + i)));
    if (i % 8 == 0) same.push_back(Submit(*engine, GreedyRequest(Tokens(70), 40)));
  }
  for (const auto& answer : same) EXPECT_EQ(ResultOf(*answer), alone);
  const auto again = Submit(*engine, GreedyRequest(Tokens(70), 40));
  EXPECT_EQ(ResultOf(*again), alone);
  EXPECT_EQ(again->prompt().num_cached, 64u);  // its whole pages
  engine->Drain();
  EXPECT_EQ(engine->stats().kv_held_bytes, 0u);
}

// PFX-03.
TEST(Engine, SeededSamplingIsTheSameAfterAHit) {
  auto engine = LoadSmall();
  Request request = GreedyRequest(Tokens(50), 30);
  request.sampling.temperature = 0.8f;
  request.sampling.seed = 7;
  const Result cold = AnswerOf(*engine, request);
  EXPECT_EQ(AnswerOf(*engine, request), cold);
  request.sampling.seed = 8;
  EXPECT_NE(AnswerOf(*engine, request), cold);
}

// PFX-06.
TEST(Engine, ThePrefixOfARunningSequenceIsShared) {
  auto engine = LoadSmall();
  auto prompt = Tokens(411);
  const auto first = Submit(*engine, GreedyRequest(prompt, 2000));
  first->Wait(0, 0);
  prompt.resize(405);
  const auto second = Submit(*engine, GreedyRequest(prompt, 1));
  second->Wait(0, UINT32_MAX);
  EXPECT_GE(second->prompt().num_cached, 400u);
  engine->Abort(first);
  engine->Drain();
}

// PFX-17, CAC-05.
TEST(Engine, ChoicesShareThePromptAndEachHasItsOwnAnswer) {
  auto engine = LoadSmall();
  Request request = GreedyRequest(Tokens(100), 8);
  request.sampling.temperature = 1;
  request.sampling.seed = 3;
  request.num_choices = 4;
  const auto answer = Submit(*engine, request);
  std::vector<Result> results;
  for (uint32_t choice = 0; choice < 4; ++choice) results.push_back(ResultOf(*answer, choice));
  EXPECT_NE(results[0], results[1]);
  const EngineStats stats = engine->stats();
  EXPECT_EQ(stats.computed_prompt_tokens, 100u);
  // A choice is a pure function of the seed and its number.
  auto again = LoadSmall();
  const auto same = Submit(*again, request);
  for (uint32_t choice = 0; choice < 4; ++choice)
    EXPECT_EQ(ResultOf(*same, choice), results[choice]);
}

TEST(Engine, ForksOfAPromptLargerThanHalfThePoolAllFinish) {
  auto engine = LoadWithPages(5);
  Request request = GreedyRequest(Tokens(40), 20);
  request.sampling.temperature = 1;
  request.num_choices = 8;
  const auto answer = Submit(*engine, request);
  for (uint32_t choice = 0; choice < 8; ++choice)
    EXPECT_EQ(ResultOf(*answer, choice).ids.size(), 20u);
}

// The 32 readers of a common prefix compute it once.
TEST(Engine, RequestsThatArriveTogetherComputeACommonPrefixOnce) {
  EngineOptions options = SmallOptions();
  options.kv_memory_bytes = uint64_t{64} << 20;
  auto engine = LoadSmall(options);
  std::vector<std::shared_ptr<Answer>> answers;
  // All are in the mailbox before the first step.
  engine->Ask([&](StepLoop&) {
    for (uint32_t i = 0; i < 32; ++i) {
      auto prompt = Tokens(2048);
      const auto own = Tokens(64, 1000 + i);
      prompt.insert(prompt.end(), own.begin(), own.end());
      prompt[2048] = static_cast<TokenId>(i);  // no two tails begin alike
      answers.push_back(Submit(*engine, GreedyRequest(prompt, 2)));
    }
  });
  for (const auto& answer : answers) EXPECT_EQ(ResultOf(*answer).ids.size(), 2u);
  EXPECT_EQ(engine->stats().computed_prompt_tokens, 2048u + 32 * 64);
}

// SCH-02, SCH-08.
TEST(Engine, WhatCanNeverFitIsRefusedAtOnceWithTheNumbers) {
  auto engine = LoadWithPages(8);
  const Status status = engine->Submit(GreedyRequest(Tokens(129), 1)).status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("9 KV pages"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("has 8 pages"), std::string::npos) << status.message();
  EXPECT_NE(engine->Submit(GreedyRequest(Tokens(100), 100)).status().message().find("13 KV pages"),
            std::string::npos);
  EXPECT_EQ(AnswerOf(*engine, GreedyRequest(Tokens(120), 8)).ids.size(), 8u);
  // Without a number of tokens: as many as fit.
  Request open = GreedyRequest(Tokens(100), 0);
  open.max_tokens.reset();
  const auto answer = Submit(*engine, open);
  EXPECT_EQ(ResultOf(*answer).ids.size(), 29u);  // 128 computed, and the last one
  EXPECT_EQ(answer->finish_reason(0), FinishReason::kMemoryFull);
}

// CAC-03, CAC-12, SCH-04.
TEST(Engine, AFullPoolPreemptsAndChangesNoBit) {
  auto roomy = LoadSmall();
  std::vector<Result> alone;
  for (uint32_t i = 0; i < 6; ++i)
    alone.push_back(AnswerOf(*roomy, GreedyRequest(Tokens(30, i), 60)));
  auto engine = LoadWithPages(10);
  std::vector<std::shared_ptr<Answer>> answers;
  for (uint32_t i = 0; i < 6; ++i)
    answers.push_back(Submit(*engine, GreedyRequest(Tokens(30, i), 60)));
  for (uint32_t i = 0; i < 6; ++i) {
    EXPECT_EQ(ResultOf(*answers[i]), alone[i]) << i;
    EXPECT_LE(answers[i]->num_preemptions(), 3u);
  }
  EXPECT_GT(engine->stats().num_preemptions, 0u);
}

// SCH-07. Token 255 is not a number: only the request that holds it fails.
TEST(Engine, ANanFailsItsRequestAndNoOther) {
  auto healthy = LoadSmall();
  std::vector<Result> alone;
  for (uint32_t i = 0; i < 3; ++i)
    alone.push_back(AnswerOf(*healthy, GreedyRequest(Tokens(40 + i, i), 20)));

  const auto loaded =
      Engine::Load(ModelWithNan(TestData("models/llama-gqa.gguf"), "token_embd.weight", 255 * 64),
                   SmallOptions(), {});
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  Engine& engine = **loaded;
  std::vector<TokenId> bad = Tokens(40, 77);
  bad[37] = 255;  // in the third page: the two before it are fine
  std::vector<std::shared_ptr<Answer>> answers;
  std::shared_ptr<Answer> failed;
  engine.Ask([&](StepLoop&) {  // all in one step
    for (uint32_t i = 0; i < 3; ++i)
      answers.push_back(Submit(engine, GreedyRequest(Tokens(40 + i, i), 20)));
    failed = Submit(engine, GreedyRequest(bad, 20));
  });
  failed->Wait(0, UINT32_MAX);
  EXPECT_EQ(failed->finish_reason(0), FinishReason::kError);
  EXPECT_EQ(failed->status(0).code(), StatusCode::kNonFinite);
  for (uint32_t i = 0; i < 3; ++i) {
    const Result result = ResultOf(*answers[i]);
    EXPECT_EQ(result, alone[i]) << i;
  }
  engine.Ask([&](StepLoop& loop) {
    EXPECT_TRUE(loop.cache().CheckInvariants().ok());
    EXPECT_EQ(loop.cache().pool().held_bytes(), 0u);
    const auto ns = loop.cache().Namespace({.identity = loop.runner().identity()}).value();
    EXPECT_LT(loop.cache().Find(ns, bad).num_shared, 37u);  // its page is in no tree
  });
}

// A request that fits the budget, but not beside what is pinned, waits for the pin to go.
TEST(Engine, ARequestWaitsForPinnedMemory) {
  auto engine = LoadWithPages(8);
  AnswerOf(*engine, GreedyRequest(Tokens(80), 1));
  PinId pin = 0;
  engine->Ask([&](StepLoop& loop) {
    const auto ns = loop.cache().Namespace({.identity = loop.runner().identity()}).value();
    EXPECT_EQ(loop.cache().Pin(ns, Tokens(80), 0, &pin), 80u);
  });
  const auto answer = Submit(*engine, GreedyRequest(Tokens(90, 9), 10));
  EXPECT_EQ(answer->Wait(0, 0, std::chrono::milliseconds(50)), 0u);
  EXPECT_FALSE(answer->ended(0));
  engine->Ask([&](StepLoop& loop) { loop.cache().Unpin(pin); });
  EXPECT_EQ(ResultOf(*answer).ids.size(), 10u);
}

// But not for ever: it would take what there is, find no room and start again.
TEST(EngineSlow, ARequestThatPinsStarveEnds) {
  auto engine = LoadWithPages(8);
  AnswerOf(*engine, GreedyRequest(Tokens(80), 1));
  PinId pin = 0;
  engine->Ask([&](StepLoop& loop) {
    const auto ns = loop.cache().Namespace({.identity = loop.runner().identity()}).value();
    EXPECT_EQ(loop.cache().Pin(ns, Tokens(80), 0, &pin), 80u);
  });
  const auto answer = Submit(*engine, GreedyRequest(Tokens(90, 9), 10));
  EXPECT_EQ(answer->WaitForAll().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(engine->stats().kv_held_bytes, 0u);
  EXPECT_EQ(AnswerOf(*engine, GreedyRequest(Tokens(20, 3), 5)).ids.size(), 5u);
}

TEST(Engine, AnAbortFreesAllWithinAStep) {
  auto engine = LoadSmall();
  std::vector<std::shared_ptr<Answer>> answers;
  for (uint32_t i = 0; i < 8; ++i)
    answers.push_back(Submit(*engine, GreedyRequest(Tokens(200, i), 3000)));
  answers[0]->Wait(0, 3);
  for (const auto& answer : answers) engine->Abort(answer);
  for (const auto& answer : answers) {
    answer->Wait(0, UINT32_MAX);
    EXPECT_EQ(answer->finish_reason(0), FinishReason::kCancelled);
  }
  const EngineStats stats = engine->stats();
  EXPECT_EQ(stats.num_running + stats.num_waiting, 0u);
  EXPECT_EQ(stats.kv_held_bytes, 0u);
  EXPECT_EQ(stats.kv_held_bytes + stats.kv_cached_bytes + stats.kv_free_bytes,
            stats.kv_budget_bytes);
}

TEST(Engine, BadRequestsAreRefusedAndNameTheField) {
  auto engine = LoadSmall();
  EXPECT_FALSE(engine->Submit(GreedyRequest({}, 4)).ok());
  EXPECT_FALSE(engine->Submit(GreedyRequest({1, -1}, 4)).ok());
  EXPECT_FALSE(engine->Submit(GreedyRequest({1, 1 << 20}, 4)).ok());
  Request request = GreedyRequest({1}, 4);
  request.num_choices = 129;
  EXPECT_NE(engine->Submit(request).status().message().find("choices"), std::string::npos);
  request.num_choices = 1;
  request.sampling.min_tokens = 5;
  EXPECT_NE(engine->Submit(request).status().message().find("min_tokens"), std::string::npos);
  request.max_tokens.reset();
  request.sampling.min_tokens = 1'000'000'000;  // more than the context holds
  EXPECT_EQ(engine->Submit(request).status().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(engine->Submit(request).status().message().find("min_tokens"), std::string::npos);
}

TEST(Engine, AFullPromptWithoutTokensIsComputedAndKept) {
  auto engine = LoadSmall();
  const auto answer = Submit(*engine, GreedyRequest(Tokens(64), 0));
  EXPECT_TRUE(ResultOf(*answer).ids.empty());
  EXPECT_EQ(answer->finish_reason(0), FinishReason::kMaxTokens);
  const auto next = Submit(*engine, GreedyRequest(Tokens(64), 1));
  EXPECT_EQ(ResultOf(*next).ids.size(), 1u);
  EXPECT_EQ(next->prompt().num_cached, 63u);
}

TEST(Engine, WithoutPrefixesNothingIsKept) {
  auto engine = LoadSmall();
  for (int i = 0; i < 2; ++i) {
    Request request = GreedyRequest(Tokens(64), 4);
    request.uses_prefixes = false;
    const auto answer = Submit(*engine, request);
    ResultOf(*answer);
    EXPECT_EQ(answer->prompt().num_cached, 0u);
  }
  EXPECT_EQ(engine->stats().kv_cached_bytes, 0u);
}

TEST(Engine, NoNewRequestsWhileItDrains) {
  auto engine = LoadSmall();
  const auto answer = Submit(*engine, GreedyRequest(Tokens(20), 10));
  engine->Drain();
  EXPECT_TRUE(answer->ended(0));
  EXPECT_FALSE(engine->Submit(GreedyRequest(Tokens(20), 10)).ok());
}

// The engine thread is the only one that computes here, so all its allocations are counted.
TEST(Engine, DecodeAllocatesNothingAfterWarmUp) {
  auto engine = LoadSmall();
  std::vector<std::shared_ptr<Answer>> answers;
  for (uint32_t i = 0; i < 8; ++i)
    answers.push_back(Submit(*engine, GreedyRequest(Tokens(40 + i, i), 400)));
  for (const auto& answer : answers) answer->Wait(0, 150);
  const uint64_t before = AllocationCount();
  for (const auto& answer : answers) answer->Wait(0, 250);
  EXPECT_EQ(AllocationCount(), before);
  engine->Drain();
}

}  // namespace
}  // namespace quire
