// Cases in which other engines failed, each in the simulator with all its checks.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "cache/kv_need.h"
#include "schedule/simulator.h"

namespace quire {
namespace {

SimulatorOptions Options(uint32_t page_size, uint32_t num_pages) {
  SimulatorOptions options;
  options.page_size = page_size;
  options.num_pages = num_pages;
  options.check_every = 8;
  return options;
}

// `length` tokens that no prompt with another salt begins with.
std::vector<TokenId> Prompt(uint32_t length, uint32_t salt) {
  std::vector<TokenId> prompt;
  for (uint32_t i = 0; i < length; ++i) prompt.push_back(static_cast<TokenId>(salt * 7 + i % 7));
  return prompt;
}

void RunSteps(Simulator& simulator, uint64_t num_steps) {
  for (uint64_t i = 0; i < num_steps; ++i) {
    const Status status = simulator.Step();
    ASSERT_TRUE(status.ok()) << status.message();
  }
}

void DrainAll(Simulator& simulator) {
  const Status status = simulator.Drain();
  ASSERT_TRUE(status.ok()) << status.message();
}

// CAC-03
TEST(ScheduleCases, WhenThreeNeedThePagesOfTwoTheYoungestWaitsThenGivesItsPagesAndAllFinish) {
  Simulator simulator(Options(16, 8));
  for (uint32_t i = 0; i < 3; ++i) simulator.Add({.prompt = Prompt(16, i), .num_answer = 60});
  RunSteps(simulator, 17);  // 32 tokens in 2 pages each
  EXPECT_EQ(simulator.num_preemptions(), 0u);
  RunSteps(simulator, 1);  // each needs a third
  EXPECT_EQ(simulator.decision().parts.size(), 2u);
  EXPECT_EQ(simulator.num_preemptions(), 0u);
  RunSteps(simulator, 16);  // two need a fourth
  EXPECT_EQ(simulator.decision().parts.size(), 2u);
  EXPECT_EQ(simulator.record(3).num_preemptions, 1u);
  DrainAll(simulator);
  EXPECT_EQ(simulator.record(1).num_preemptions, 0u);  // the oldest goes on
  for (uint64_t id = 1; id <= 3; ++id) EXPECT_GT(simulator.record(id).first_token, 0u);
}

// CAC-05
TEST(ScheduleCases, EightForksInAPoolOfFivePagesAllAnswer) {
  Simulator simulator(Options(16, 5));
  simulator.Add({.prompt = Prompt(40, 0), .num_answer = 10});
  RunSteps(simulator, 1);
  for (uint32_t i = 1; i < 8; ++i) ASSERT_NE(simulator.Fork(1), 0u);
  DrainAll(simulator);
  for (uint64_t id = 1; id <= 8; ++id) {
    EXPECT_GT(simulator.record(id).end_step, 0u);
    EXPECT_FALSE(simulator.record(id).is_refused);
  }
}

// CAC-12
TEST(ScheduleCases, OneLongRequestTakesMostOfThePoolAndShortOnesRunBesideIt) {
  SimulatorOptions options = Options(16, 40);
  options.limits.max_running = 8;
  Simulator simulator(options);
  const uint64_t lone = simulator.Add({.prompt = Prompt(500, 0), .num_answer = 12});
  RunSteps(simulator, 1);
  for (uint32_t i = 1; i < 8; ++i) simulator.Add({.prompt = Prompt(8, i), .num_answer = 4});
  RunSteps(simulator, 2);
  EXPECT_EQ(simulator.num_live(), 8u);
  EXPECT_EQ(simulator.cache().pool().num_held(OpenClass(0)), 32u + 7u);
  DrainAll(simulator);
  EXPECT_EQ(simulator.num_preemptions(), 0u);
  EXPECT_FALSE(simulator.record(lone).is_refused);
}

// SCH-01
TEST(ScheduleCases, AShortRequestStartsBesideLongPrompts) {
  Simulator simulator(Options(64, 500));
  for (uint32_t i = 0; i < 3; ++i) simulator.Add({.prompt = Prompt(8'000, i), .num_answer = 5});
  RunSteps(simulator, 5);
  const uint64_t id = simulator.Add({.prompt = Prompt(20, 9), .num_answer = 5});
  RunSteps(simulator, 4);
  EXPECT_GT(simulator.record(id).first_token, 0u);
  for (uint64_t other = 1; other <= 3; ++other) EXPECT_EQ(simulator.record(other).first_token, 0u);
  DrainAll(simulator);
}

// SCH-01: and a stream of short ones does not stop the long one.
TEST(ScheduleCases, ALongPromptGetsHalfOfTheTokensBesideAStreamOfShortOnes) {
  Simulator simulator(Options(64, 500));
  const uint64_t lone = simulator.Add({.prompt = Prompt(8'000, 0), .num_answer = 1});
  for (uint32_t i = 1; simulator.record(lone).end_step == 0; ++i) {
    for (uint32_t k = 0; k < 4; ++k)
      simulator.Add({.prompt = Prompt(200, 4 * i + k), .num_answer = 1});
    RunSteps(simulator, 1);
    ASSERT_LT(simulator.step(), 40u);
  }
  EXPECT_LE(simulator.step(), 33u);  // 8,000 / 256, rounded up, and one
}

// SCH-02
TEST(ScheduleCases, WhatCanNeverFitIsRefusedAtOnceWithNumbersAndBlocksNobody) {
  Simulator simulator(Options(16, 8));
  const uint64_t busy = simulator.Add({.prompt = Prompt(60, 0), .num_answer = 50});
  RunSteps(simulator, 2);
  const uint64_t large = simulator.Add({.prompt = Prompt(129, 1), .num_answer = 1});
  const uint64_t normal = simulator.Add({.prompt = Prompt(20, 2), .num_answer = 4});
  RunSteps(simulator, 1);
  EXPECT_TRUE(simulator.record(large).is_refused);
  EXPECT_EQ(simulator.record(large).needed_bytes, 9 * PageStride(16 * 8));
  EXPECT_GT(simulator.record(normal).first_token, 0u);
  DrainAll(simulator);
  EXPECT_FALSE(simulator.record(busy).is_refused);
}

// SCH-02: also behind a long queue.
TEST(ScheduleCases, ARefusalDoesNotWaitForItsTurnInTheQueue) {
  Simulator simulator(Options(16, 8));
  for (uint32_t i = 0; i < 40; ++i) simulator.Add({.prompt = Prompt(100, i), .num_answer = 20});
  RunSteps(simulator, 5);
  const uint64_t large = simulator.Add({.prompt = Prompt(129, 50), .num_answer = 1});
  RunSteps(simulator, 1);
  EXPECT_TRUE(simulator.record(large).is_refused);
  DrainAll(simulator);
}

// SCH-04
TEST(ScheduleCases, TwiceTheDemandOfThePoolKeepsItsSpeedAndPreemptsEachAFewTimes) {
  // A step takes the time of 16 tokens and of those that it computes.
  const auto tokens_per_time = [](uint32_t num_pages, uint64_t* preemptions) {
    SimulatorOptions options = Options(16, num_pages);
    options.check_every = 100;
    options.limits.token_budget = 128;
    Simulator simulator(options);
    uint64_t num_answered = 0, steps = 0;
    for (uint32_t i = 0; steps < 6'000; ++i) {
      for (; simulator.num_live() < 30; ++i)
        simulator.Add(
            {.prompt = Prompt(64, i), .num_answer = 64 + i * 37 % 64, .most_answer = 192});
      RunSteps(simulator, 1);
      ++steps;
    }
    for (uint64_t id = 1; id < simulator.num_records(); ++id) {
      const Simulator::Record& record = simulator.record(id);
      EXPECT_LE(record.num_preemptions, 3u);
      if (record.end_step > 0) num_answered += 64 + (record.end_step - record.first_token + 1);
    }
    *preemptions = simulator.num_preemptions();
    return static_cast<double>(num_answered) /
           (16.0 * static_cast<double>(steps) + static_cast<double>(simulator.num_computed()));
  };
  uint64_t fitting_preemptions, preemptions;
  const double fitting = tokens_per_time(30 * 12, &fitting_preemptions);
  const double half = tokens_per_time(30 * 5, &preemptions);
  RecordProperty("part_of_the_speed_that_fits", std::to_string(half / fitting));
  EXPECT_EQ(fitting_preemptions, 0u);
  EXPECT_GT(preemptions, 10u);
  EXPECT_GE(half, 0.6 * fitting);
}

// SCH-05
TEST(ScheduleCases, AfterPressureStreamsGetATokenEachStepAgain) {
  Simulator simulator(Options(16, 24));
  for (uint32_t i = 0; i < 2; ++i) simulator.Add({.prompt = Prompt(20, i), .num_answer = 160});
  std::vector<uint64_t> others;
  for (uint32_t i = 2; i < 12; ++i)
    others.push_back(simulator.Add({.prompt = Prompt(40, i), .num_answer = 100}));
  RunSteps(simulator, 60);
  EXPECT_GT(simulator.num_preemptions(), 0u);
  for (const uint64_t id : others) simulator.Abort(id);
  for (uint32_t i = 0; i < 20; ++i) {
    RunSteps(simulator, 1);
    EXPECT_EQ(simulator.decision().parts.size(), 2u);
  }
  DrainAll(simulator);
}

// SCH-07
TEST(ScheduleCases, OneThatEndsWithAnErrorTakesNothingFromTheOthers) {
  Simulator simulator(Options(16, 64));
  for (uint32_t i = 0; i < 4; ++i) simulator.Add({.prompt = Prompt(48, 0), .num_answer = 40});
  RunSteps(simulator, 10);
  const uint32_t num_nodes = simulator.cache().tree().nodes().num_nodes();
  simulator.Abort(1);  // the one that computed the prompt for all
  EXPECT_EQ(simulator.cache().tree().nodes().num_nodes(), num_nodes);
  RunSteps(simulator, 1);
  EXPECT_EQ(simulator.decision().parts.size(), 3u);
  DrainAll(simulator);
  for (uint64_t id = 2; id <= 4; ++id)
    EXPECT_LE(simulator.record(id).longest_wait, 2u) << id;  // for the prompt
}

// SCH-08
TEST(ScheduleCases, ARequestThatCouldOutgrowThePoolIsRefusedAtItsStart) {
  Simulator simulator(Options(16, 8));
  const uint64_t id =
      simulator.Add({.prompt = Prompt(100, 0), .num_answer = 1, .most_answer = 100});
  RunSteps(simulator, 1);
  EXPECT_TRUE(simulator.record(id).is_refused);
  EXPECT_EQ(simulator.record(id).needed_bytes, 13 * PageStride(16 * 8));
}

// SCH-08: exactly: what fits to the last slot runs to its end, alone or not.
TEST(ScheduleCases, ARequestOfTheWholePoolRunsToItsEnd) {
  Simulator simulator(Options(16, 8));
  for (uint32_t i = 0; i < 3; ++i) simulator.Add({.prompt = Prompt(100, i), .num_answer = 29});
  DrainAll(simulator);
  for (uint64_t id = 1; id <= 3; ++id) EXPECT_FALSE(simulator.record(id).is_refused);
}

// SCH-08: 7 pages and a tail of the last request fill the pool: no room to copy the tail.
TEST(ScheduleCases, APromptWhoseCachedPagesLeaveNoRoomStartsWithoutThem) {
  Simulator simulator(Options(16, 8));
  simulator.Add({.prompt = Prompt(120, 0), .num_answer = 1});
  RunSteps(simulator, 1);
  EXPECT_EQ(simulator.cache().pool().num_cached(OpenClass(0)), 8u);
  std::vector<TokenId> longer = Prompt(120, 0);
  simulator.Add({.prompt = longer, .num_answer = 5});
  longer.push_back(5);
  simulator.Add({.prompt = longer, .num_answer = 5});
  DrainAll(simulator);
  EXPECT_EQ(simulator.num_preemptions(), 0u);
  EXPECT_GE(simulator.num_cold_starts(), 1u);
}

TEST(ScheduleCases, WithPagesPinnedARequestWaitsAndGoesOnAfter) {
  Simulator simulator(Options(16, 8));
  const std::vector<TokenId> kept = Prompt(64, 0);
  simulator.Add({.prompt = kept, .num_answer = 1});
  RunSteps(simulator, 1);
  PinId pin;
  ASSERT_EQ(simulator.cache().Pin(1, kept, 0, &pin), 64u);
  const uint64_t id = simulator.Add({.prompt = Prompt(100, 1), .num_answer = 20});
  RunSteps(simulator, 3);
  EXPECT_EQ(simulator.record(id).first_token, 0u);
  ASSERT_TRUE(simulator.cache().Unpin(pin));
  DrainAll(simulator);
  EXPECT_GT(simulator.record(id).end_step, 0u);
}

// SCH-10
TEST(ScheduleCases, DecodesAndAPromptShareAStep) {
  Simulator simulator(Options(16, 64));
  for (uint32_t i = 0; i < 3; ++i) simulator.Add({.prompt = Prompt(8, i), .num_answer = 9});
  RunSteps(simulator, 2);
  simulator.Abort(2);
  simulator.Add({.prompt = Prompt(300, 3), .num_answer = 9});
  RunSteps(simulator, 1);
  const std::vector<StepPart>& parts = simulator.decision().parts;
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[0].num_tokens, 1u);
  EXPECT_EQ(parts[1].num_tokens, 1u);
  EXPECT_EQ(parts[2].num_tokens, 300u);
}

}  // namespace
}  // namespace quire
