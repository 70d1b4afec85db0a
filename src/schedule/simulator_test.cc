// Simulated runs of all kinds of cache under random load. CAC-03, CAC-05, CAC-12 and SCH-02 to
// SCH-08 as invariants of every step; schedule_test.cc has each case by itself.
#include "schedule/simulator.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace quire {
namespace {

constexpr uint64_t kSeeds = 200;

// 500 in each of the gate's runs, 100,000 in all; QUIRE_SIMULATOR_STEPS for long ones.
uint64_t NumSteps() {
  const char* steps = std::getenv("QUIRE_SIMULATOR_STEPS");
  return steps == nullptr ? 500 : std::strtoull(steps, nullptr, 10);
}

SimulatorOptions OptionsOf(uint64_t seed) {
  SimulatorOptions options;
  options.seed = seed;
  options.num_pages = 8 + static_cast<uint32_t>(seed * 7 % 57);  // 8 to 64
  options.seals = seed % 2 == 1;
  options.window = seed % 4 >= 2 ? 3 + static_cast<uint32_t>(seed % 13) : 0;
  if (options.seals) {
    options.sink_pages = static_cast<uint32_t>(seed / 4 % 2);
    options.recent_pages = static_cast<uint32_t>(seed / 8 % 3);
  }
  options.keeps_prefixes = seed % 16 != 0;
  options.page_size = seed % 5 == 0 ? 8 : 4;
  options.check_every = 4;
  options.most_live = 4 + static_cast<uint32_t>(seed % 3) * 10;
  options.limits.token_budget = seed % 7 == 0 ? 1 + static_cast<uint32_t>(seed % 6) : 32;
  options.limits.max_running = seed % 3 == 0 ? 3 : 256;
  options.limits.watermark_bytes = seed % 2 * PageStride(options.page_size * sizeof(uint64_t));
  return options;
}

TEST(Simulator, NoRequestStallsAndNoPageIsLostUnderRandomLoad) {
  uint64_t num_preemptions = 0, num_refused = 0, num_cold = 0, num_ended = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    Simulator simulator(OptionsOf(seed));
    for (uint64_t i = 0; i < NumSteps(); ++i) {
      const Status status = simulator.RandomStep();
      ASSERT_TRUE(status.ok()) << "seed " << seed << ": " << status.message();
    }
    const Status drained = simulator.Drain();
    ASSERT_TRUE(drained.ok()) << "seed " << seed << ": " << drained.message();
    num_preemptions += simulator.num_preemptions();
    num_cold += simulator.num_cold_starts();
    for (uint64_t id = 1; id < simulator.num_records(); ++id) {
      num_refused += simulator.record(id).is_refused ? 1 : 0;
      num_ended += simulator.record(id).end_step > 0 ? 1 : 0;
      ASSERT_GT(simulator.record(id).end_step, 0u) << "seed " << seed << ", request " << id;
    }
  }
  std::printf("%lu ended, %lu refused, %lu preempted, %lu cold\n", num_ended, num_refused,
              num_preemptions, num_cold);
  // The load is what it is meant to be.
  EXPECT_GT(num_preemptions, NumSteps());
  EXPECT_GT(num_refused, NumSteps() / 10);
}

}  // namespace
}  // namespace quire
