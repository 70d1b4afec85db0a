// Order between requests: priorities, tenants, and prompts that begin alike.
#include <gtest/gtest.h>

#include "schedule/simulator.h"

namespace quire {
namespace {

std::vector<TokenId> Prompt(uint32_t length, uint32_t salt) {
  std::vector<TokenId> prompt;
  for (uint32_t i = 0; i < length; ++i) prompt.push_back(static_cast<TokenId>(salt * 7 + i % 7));
  return prompt;
}

class Fairness : public ::testing::Test {
 protected:
  void Start(uint32_t page_size, uint32_t num_pages, const ScheduleLimits& limits = {}) {
    SimulatorOptions options;
    options.page_size = page_size;
    options.num_pages = num_pages;
    options.check_every = 16;
    options.limits = limits;
    simulator_ = std::make_unique<Simulator>(options);
  }
  void RunSteps(uint64_t num_steps) {
    for (uint64_t i = 0; i < num_steps; ++i) {
      const Status status = simulator_->Step();
      ASSERT_TRUE(status.ok()) << status.message();
    }
  }
  void Drain() {
    const Status status = simulator_->Drain();
    ASSERT_TRUE(status.ok()) << status.message();
  }

  std::unique_ptr<Simulator> simulator_;
};

// SCH-11
TEST_F(Fairness, AHighPriorityStartsWithinTwoStepsAndFitsByPreemption) {
  Start(16, 32);
  for (uint32_t i = 0; i < 50; ++i)
    simulator_->Add({.prompt = Prompt(40, i), .num_answer = 60, .priority = 5});
  RunSteps(70);
  const uint64_t high =
      simulator_->Add({.prompt = Prompt(100, 99), .num_answer = 5, .priority = -1});
  RunSteps(2);
  EXPECT_GT(simulator_->record(high).first_part, 0u);
  RunSteps(6);
  EXPECT_GT(simulator_->record(high).end_step, 0u);
  Drain();
}

// SCH-11
TEST_F(Fairness, WithAllPlacesTakenAHighPriorityTakesOne) {
  Start(16, 256, {.max_running = 4});
  for (uint32_t i = 0; i < 9; ++i)
    simulator_->Add({.prompt = Prompt(40, i), .num_answer = 60, .priority = 5});
  RunSteps(3);
  const uint64_t high = simulator_->Add({.prompt = Prompt(40, 99), .num_answer = 5});
  RunSteps(2);
  EXPECT_GT(simulator_->record(high).first_part, 0u);
  EXPECT_EQ(simulator_->num_preemptions(), 1u);
  Drain();
}

// SCH-11: a turn comes every 64 steps, to the one that has waited longest; it may be preempted
// three times, and then runs to its end.
TEST_F(Fairness, LowPrioritiesEndUnderASteadyHighLoad) {
  constexpr uint32_t kLow = 5;
  Start(16, 24, {.max_running = 4});
  for (uint32_t i = 0; i < kLow; ++i)
    simulator_->Add({.prompt = Prompt(40, i), .num_answer = 20, .priority = 5});
  uint32_t num_ended = 0;
  for (uint32_t i = kLow; num_ended < kLow; ++i) {
    while (simulator_->num_live() < kLow - num_ended + 6)
      simulator_->Add({.prompt = Prompt(40, 100 + i++), .num_answer = 30});
    RunSteps(1);
    num_ended = 0;
    for (uint64_t id = 1; id <= kLow; ++id)
      num_ended += simulator_->record(id).end_step > 0 ? 1 : 0;
    ASSERT_LT(simulator_->step(), 64u * (4 * kLow + 2)) << num_ended;
  }
  for (uint64_t id = 1; id <= kLow; ++id) {
    EXPECT_LE(simulator_->record(id).longest_wait, 64u * (kLow + 1) + 1);
    EXPECT_LE(simulator_->record(id).num_preemptions, 3u);
  }
}

TEST_F(Fairness, ALowPromptGetsAChunkEverySixteenStepsBesideHighPrompts) {
  Start(16, 256, {.token_budget = 32});
  const uint64_t low = simulator_->Add({.prompt = Prompt(200, 0), .priority = 5});
  RunSteps(1);
  for (uint32_t i = 1; simulator_->record(low).end_step == 0; ++i) {
    while (simulator_->num_live() < 4)
      simulator_->Add({.prompt = Prompt(64, i++), .num_answer = 1});
    RunSteps(1);
    ASSERT_LT(simulator_->step(), 400u);
  }
  EXPECT_GT(simulator_->record(low).longest_wait, 4u);  // the others are first
  EXPECT_LE(simulator_->record(low).longest_wait, 17u);
}

// SCH-12
TEST_F(Fairness, ATenantWithOneRequestIsNotStarvedByOneWithAHundred) {
  const auto steps_to_first_token = [&](uint32_t num_others, uint32_t num_pages, uint64_t* steps) {
    Start(16, num_pages, {.watermark_bytes = 4 * PageStride(16 * 8)});
    for (uint32_t i = 0; i < num_others; ++i)
      simulator_->Add({.prompt = Prompt(500, i), .num_answer = 50, .tenant = 0});
    RunSteps(40);
    const uint64_t id = simulator_->Add({.prompt = Prompt(20, 999), .num_answer = 5, .tenant = 1});
    RunSteps(4);
    ASSERT_GT(simulator_->record(id).first_token, 0u);
    *steps = simulator_->record(id).first_token - simulator_->record(id).arrival_step + 1;
    Drain();
  };
  for (const uint32_t num_pages : {150u, 5'000u}) {  // some wait; all run
    uint64_t alone = 0, beside = 0;
    steps_to_first_token(0, num_pages, &alone);
    steps_to_first_token(100, num_pages, &beside);
    EXPECT_LE(beside, 2 * alone) << num_pages;
  }
}

TEST_F(Fairness, ALargeRequestIsNotPassedByAStreamOfSmallOnes) {
  Start(16, 16);
  uint64_t large = 0;
  for (uint32_t i = 0; i < 600 && simulator_->step() < 60 &&
                       (large == 0 || simulator_->record(large).first_part == 0);
       ++i) {
    while (simulator_->num_live() < 10)
      simulator_->Add({.prompt = Prompt(16, i++), .num_answer = 20});
    if (simulator_->step() == 10)
      large = simulator_->Add({.prompt = Prompt(200, 999), .num_answer = 1});
    RunSteps(1);
  }
  // Before its turn in step 64: when those that ran have ended.
  EXPECT_GT(simulator_->record(large).first_part, 0u);
  EXPECT_LE(simulator_->step(), 55u);
  Drain();
}

// SCH-12: of places too.
TEST_F(Fairness, TheLastPlaceIsForATenantThatHasNone) {
  Start(16, 256, {.max_running = 8});
  for (uint32_t i = 0; i < 12; ++i)
    simulator_->Add({.prompt = Prompt(40, i), .num_answer = 60, .tenant = 0});
  const uint64_t other = simulator_->Add({.prompt = Prompt(40, 50), .tenant = 1});
  RunSteps(2);
  EXPECT_GT(simulator_->record(other).first_token, 0u);
  const uint64_t late = simulator_->Add({.prompt = Prompt(40, 51), .tenant = 1});
  RunSteps(1);
  EXPECT_GT(simulator_->record(late).first_token, 0u);
  Drain();
}

// SCH-12: and of memory.
TEST_F(Fairness, ATenantWithNothingRunningMayUseTheWatermark) {
  Start(16, 20, {.watermark_bytes = 4 * PageStride(16 * 8)});
  for (uint32_t i = 0; i < 6; ++i)
    simulator_->Add({.prompt = Prompt(40, i), .num_answer = 20, .tenant = 0});
  RunSteps(4);  // 3 pages each, 15 of 20; the sixth would take 4
  EXPECT_EQ(simulator_->decision().parts.size(), 5u);
  const uint64_t other = simulator_->Add({.prompt = Prompt(20, 50), .tenant = 1});
  RunSteps(1);
  EXPECT_GT(simulator_->record(other).first_token, 0u);
  EXPECT_EQ(simulator_->record(6).first_part, 0u);
  Drain();
}

TEST_F(Fairness, DecodesUseWhatPromptsLeaveOfTheBudget) {
  Start(16, 256, {.token_budget = 20});
  for (uint32_t i = 0; i < 18; ++i) simulator_->Add({.prompt = Prompt(1, i), .num_answer = 60});
  RunSteps(3);
  simulator_->Add({.prompt = Prompt(2, 50), .num_answer = 60});
  RunSteps(1);
  EXPECT_EQ(simulator_->decision().parts.size(), 19u);
  Drain();
}

TEST_F(Fairness, MoreDecodesThanTokensTakeTurnsAndLeaveSomeForPrompts) {
  Start(16, 256, {.token_budget = 8});
  std::vector<uint64_t> ids;
  for (uint32_t i = 0; i < 12; ++i)
    ids.push_back(simulator_->Add({.prompt = Prompt(8, i), .num_answer = 200}));
  RunSteps(40);
  const uint64_t late = simulator_->Add({.prompt = Prompt(8, 50), .num_answer = 1});
  RunSteps(4);
  EXPECT_GT(simulator_->record(late).first_token, 0u);
  RunSteps(40);
  for (const uint64_t id : ids) EXPECT_GT(simulator_->record(id).last_part, 81u) << id;
  Drain();
}

TEST_F(Fairness, TenantsGetTokensByTheirTurnNotByTheirNumberOfRequests) {
  Start(16, 400, {.token_budget = 64, .max_running = 400});
  for (uint32_t i = 0; i < 40; ++i)
    simulator_->Add({.prompt = Prompt(64, i), .num_answer = 1, .tenant = 0});
  for (uint32_t i = 0; i < 10; ++i)
    simulator_->Add({.prompt = Prompt(64, 100 + i), .num_answer = 1, .tenant = 1});
  RunSteps(22);
  // The second tenant's 640 tokens are half of what has been computed.
  for (uint64_t id = 41; id <= 50; ++id) EXPECT_GT(simulator_->record(id).end_step, 0u) << id;
  Drain();
}

TEST_F(Fairness, PromptsThatBeginAlikeAreComputedOnce) {
  Start(16, 64, {.token_budget = 48});
  std::vector<TokenId> prompt = Prompt(160, 0);
  for (uint32_t i = 0; i < 10; ++i) {
    prompt.back() = static_cast<TokenId>(1'000 + i);
    simulator_->Add({.prompt = prompt, .num_answer = 1});
  }
  Drain();
  EXPECT_EQ(simulator_->num_computed(), 160u + 9 * 16u);  // 9 whole pages are shared
}

TEST_F(Fairness, APromptThatEndsWithThePageDoesNotWaitForIt) {
  Start(16, 64);
  std::vector<uint64_t> ids;
  for (uint32_t i = 0; i < 3; ++i)
    ids.push_back(simulator_->Add({.prompt = Prompt(16, 0), .num_answer = 1}));
  RunSteps(1);
  for (const uint64_t id : ids) EXPECT_GT(simulator_->record(id).first_token, 0u);
  Drain();
}

TEST_F(Fairness, ARunningPromptWaitsForThePageThatAFirstOneComputes) {
  Start(16, 64, {.token_budget = 96});
  std::vector<TokenId> prompt = Prompt(400, 0);
  simulator_->Add({.prompt = prompt, .num_answer = 1});
  RunSteps(1);
  prompt.resize(112);  // one page beyond
  simulator_->Add({.prompt = prompt, .num_answer = 1, .priority = -1});
  Drain();
  EXPECT_EQ(simulator_->num_computed(), 400u);
}

TEST_F(Fairness, WhenTheOneThatComputesForOthersIsAbortedAnotherGoesOn) {
  Start(16, 64, {.token_budget = 20});
  for (uint32_t i = 0; i < 4; ++i) simulator_->Add({.prompt = Prompt(160, 0), .num_answer = 1});
  for (uint64_t id = 1; id <= 3; ++id) {
    RunSteps(2);
    simulator_->Abort(id);  // in the middle of a page
  }
  const uint64_t before = simulator_->step();
  while (simulator_->record(4).end_step == 0) RunSteps(1);
  EXPECT_LE(simulator_->step() - before, 4u);  // 48 to 60 tokens are left
  EXPECT_LE(simulator_->num_computed(), 160u + 3 * 16u);
  Drain();
}

TEST_F(Fairness, AWaitingPromptThatFollowsAnotherDoesNotHoldBackTheRest) {
  Start(16, 40, {.token_budget = 32});
  for (uint32_t i = 0; i < 3; ++i) simulator_->Add({.prompt = Prompt(400, 0), .num_answer = 1});
  const uint64_t other = simulator_->Add({.prompt = Prompt(20, 9), .num_answer = 1});
  RunSteps(2);
  EXPECT_GT(simulator_->record(other).first_part, 0u);
  Drain();
}

}  // namespace
}  // namespace quire
