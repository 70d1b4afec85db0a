#include "schedule/chunk_controller.h"

#include <gtest/gtest.h>

namespace quire {
namespace {

// A machine on which a step takes a fixed time and some for each token.
struct Machine {
  double fixed_ms, token_ms;
  double Ms(uint32_t num_tokens) const { return fixed_ms + token_ms * num_tokens; }
};

void RunSteps(const Machine& machine, uint32_t num_decodes, uint32_t num_steps,
              ChunkController* chunks) {
  for (uint32_t i = 0; i < num_steps; ++i) {
    const uint32_t budget = chunks->Budget(num_decodes);
    chunks->Measure(budget, machine.Ms(budget));
  }
}

TEST(ChunkController, WithoutATargetTheBudgetStays) {
  ChunkController chunks({.most_tokens = 300});
  chunks.Measure(300, 1e6);
  EXPECT_EQ(chunks.Budget(0), 300u);
}

TEST(ChunkController, FindsTheBudgetOfTheTargetOnMachinesOfAllSpeeds) {
  for (const Machine& machine :
       {Machine{5, 0.2}, Machine{40, 1}, Machine{1, 3}, Machine{60, 0.1}}) {
    ChunkController chunks({.target_ms = 80, .most_tokens = 8192});
    RunSteps(machine, 4, 40, &chunks);
    EXPECT_NEAR(machine.Ms(chunks.Budget(4)), 80, 8)
        << machine.fixed_ms << ", " << machine.token_ms;
  }
}

TEST(ChunkController, IsWithinTwiceTheTargetAfterSixStepsFromTheMost) {
  const Machine machine{5, 1};
  ChunkController chunks({.target_ms = 80, .most_tokens = 4096});
  RunSteps(machine, 4, 6, &chunks);
  EXPECT_LE(machine.Ms(chunks.Budget(4)), 160);
}

TEST(ChunkController, FollowsAMachineThatGetsSlowerAndFasterAgain) {
  ChunkController chunks({.target_ms = 80, .most_tokens = 8192});
  RunSteps({5, 0.2}, 4, 40, &chunks);
  RunSteps({5, 1}, 4, 10, &chunks);
  EXPECT_NEAR(5 + chunks.Budget(4), 80, 8);
  RunSteps({5, 0.2}, 4, 10, &chunks);
  EXPECT_NEAR(5 + 0.2 * chunks.Budget(4), 80, 8);
}

TEST(ChunkController, QuickStepsThatDidNotUseTheBudgetDoNotRaiseIt) {
  ChunkController chunks({.target_ms = 80, .most_tokens = 8192});
  RunSteps({5, 1}, 4, 40, &chunks);
  const uint32_t before = chunks.Budget(4);
  for (int i = 0; i < 1'000; ++i) chunks.Measure(4, 9);
  EXPECT_EQ(chunks.Budget(4), before);
}

TEST(ChunkController, DecodesAreNotHeldBackAndPromptsKeepTheirLeastChunk) {
  ChunkController chunks({.target_ms = 1, .least_tokens = 16, .most_tokens = 512});
  RunSteps({50, 1}, 100, 40, &chunks);
  EXPECT_EQ(chunks.Budget(100), 116u);
}

}  // namespace
}  // namespace quire
