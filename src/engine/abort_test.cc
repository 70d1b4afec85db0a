// Aborts in every phase leak nothing and take effect before the next step.
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "engine/test_engine.h"
#include "engine/test_loop.h"

namespace quire {
namespace {

void ExpectNothingHeld(StepLoop& loop) {
  const Status status = loop.cache().CheckInvariants();
  EXPECT_TRUE(status.ok()) << status.message();
  const PagePool& pool = loop.cache().pool();
  EXPECT_EQ(pool.held_bytes(), 0u);
  EXPECT_EQ(pool.held_bytes() + pool.cached_bytes() + pool.free_bytes(), pool.budget_bytes());
  EXPECT_TRUE(loop.requests().empty());
}

Request RandomRequest(std::mt19937& random) {
  Request request{.prompt = Tokens(1 + random() % 90, random() % 12)};
  request.sampling.temperature = 1;
  if (random() % 3 == 0) request.num_choices = 2 + random() % 3;
  if (random() % 4 == 0) request.prompt_logprobs = random() % 4;
  if (random() % 8 == 0) request.uses_prefixes = false;
  request.priority = static_cast<int32_t>(random() % 3);
  request.tenant.assign(1, random() % 2 == 0 ? 'a' : 'b');
  return request;
}

// STR-08. Queued, prefill, decode, finishing, ended; with several choices, preempted, scoring.
TEST(Abort, InAnyPhaseFreesAllPagesInTheNextStep) {
  EngineOptions options;
  options.token_budget = 48;
  options.max_seqs = 8;
  Loop loop(options, /*num_pages=*/24);
  std::mt19937 random(7);
  struct Planned {
    std::shared_ptr<Answer> answer;
    uint32_t steps_left;
  };
  std::vector<Planned> planned;
  constexpr uint32_t kNumRequests = 4000;
  uint32_t num_added = 0, num_by_phase[4] = {};
  while (num_added < kNumRequests || !planned.empty()) {
    while (num_added < kNumRequests && planned.size() < 14) {
      const auto steps = static_cast<uint32_t>(random() % 14);
      planned.push_back({loop.Add(RandomRequest(random), 1 + random() % 10), steps});
      ++num_added;
    }
    std::vector<std::shared_ptr<Answer>> aborted;
    std::erase_if(planned, [&](Planned& plan) {
      if (plan.steps_left-- > 0) return false;
      ++num_by_phase[static_cast<int>(plan.answer->phase())];
      plan.answer->Abort();
      aborted.push_back(plan.answer);
      return true;
    });
    if (random() % 64 == 0) loop.steps->PreemptAll();
    if (loop.steps->has_work()) loop.steps->Step();
    for (const auto& answer : aborted) {
      ASSERT_EQ(answer->phase(), AnswerPhase::kEnded);
      for (uint32_t choice = 0; choice < answer->num_choices(); ++choice)
        ASSERT_TRUE(answer->ended(choice));
      for (const RequestInfo& info : loop.steps->requests()) ASSERT_NE(info.id, answer->id());
    }
  }
  for (const uint32_t count : num_by_phase) EXPECT_GT(count, 200u);
  EXPECT_GT(loop.stats().num_preemptions, 10u);
  EXPECT_FALSE(loop.steps->has_work());
  ExpectNothingHeld(*loop.steps);
}

TEST(Abort, ByManyThreadsAtAnyMomentLeavesNothing) {
  EngineOptions options = SmallOptions();
  options.max_queue = 20;
  auto engine = LoadSmall(options);
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(100 + t);
      for (int i = 0; i < 250; ++i) {
        std::vector<std::shared_ptr<Answer>> answers;
        for (int k = 0; k < 4; ++k) {
          Request request = RandomRequest(random);
          request.max_tokens = 1 + random() % 20;
          auto answer = engine->Submit(std::move(request));
          if (answer.ok()) answers.push_back(std::move(answer).value());
        }
        const auto pause = std::chrono::microseconds(random() % 3000);
        if (!answers.empty()) answers[0]->Wait(0, random() % 4, std::chrono::milliseconds(2));
        std::this_thread::sleep_for(pause);
        for (const auto& answer : answers) answer->Abort();
        for (const auto& answer : answers)
          EXPECT_NE(answer->WaitForAll().code(), StatusCode::kInternal);
      }
    });
  for (std::thread& thread : threads) thread.join();
  engine->Ask([](StepLoop& loop) {
    EXPECT_FALSE(loop.has_work());
    ExpectNothingHeld(loop);
  });
  // None of them is still counted as waiting.
  engine->Ask([&](StepLoop&) {
    for (uint32_t i = 0; i < 20; ++i) Submit(*engine, GreedyRequest(Tokens(5, i), 1));
    EXPECT_EQ(engine->Submit(GreedyRequest(Tokens(5), 1)).status().code(),
              StatusCode::kUnavailable);
  });
  engine->Drain();
}

// STR-06.
TEST(Abort, OfALongPromptStopsAtTheNextChunk) {
  Loop loop({.token_budget = 64});
  const auto answer = loop.Add({.prompt = Tokens(3000)}, 10);
  for (int i = 0; i < 3; ++i) loop.steps->Step();
  answer->Abort();
  while (loop.steps->has_work()) loop.steps->Step();
  EXPECT_EQ(loop.stats().computed_prompt_tokens, 3u * 64);
  // What is computed is there for the next try.
  const auto again = loop.Add({.prompt = Tokens(3000)}, 1);
  loop.steps->Step();
  EXPECT_EQ(again->num_cached(), 3u * 64);
  again->Abort();
}

}  // namespace
}  // namespace quire
