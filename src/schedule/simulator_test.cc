// Simulated runs of all kinds of cache under random load: CAC-03, CAC-05, CAC-12, SCH-02 to SCH-04
// and SCH-06 to SCH-08 as invariants of every step. schedule_cases_test.cc has them one by one;
// simulator_main.cc runs longer (tools/nightly.sh: 20 million steps).
#include "schedule/simulator.h"

#include <gtest/gtest.h>

namespace quire {
namespace {

constexpr uint64_t kSeeds = 200;
#ifdef QUIRE_SANITIZED
constexpr uint64_t kSteps = 250;  // in each
#else
constexpr uint64_t kSteps = 2'500;
#endif

TEST(Simulator, NoRequestStallsAndNoPageIsLostUnderRandomLoad) {
  uint64_t num_preempted = 0, num_refused = 0, num_aborted = 0, num_cold = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    Simulator simulator(RandomOptions(seed));
    const Status status = simulator.RunRandom(kSteps);
    ASSERT_TRUE(status.ok()) << "seed " << seed << ": " << status.message();
    num_preempted += simulator.num_preemptions();
    num_cold += simulator.num_cold_starts();
    for (uint64_t id = 1; id < simulator.num_records(); ++id) {
      const Simulator::Record& record = simulator.record(id);
      ASSERT_GT(record.end_step, 0u) << "seed " << seed << ", request " << id;
      num_refused += record.is_refused ? 1 : 0;
      num_aborted += record.is_aborted ? 1 : 0;
    }
  }
  // The load is what it is meant to be.
  EXPECT_GT(num_preempted, kSteps * kSeeds / 100);
  EXPECT_GT(num_refused, kSteps * kSeeds / 100);
  EXPECT_GT(num_aborted, kSteps * kSeeds / 100);
  EXPECT_GT(num_cold, 0u);
}

// A fork leaves its last page in a pool that it fills, while each step refuses a new request: found
// in step 1,575 of this seed.
TEST(Simulator, RefusalsDoNotHideThatNothingElseGoesOn) {
  Simulator simulator(RandomOptions(383));
  const Status status = simulator.RunRandom(2'000);
  EXPECT_TRUE(status.ok()) << status.message();
}

}  // namespace
}  // namespace quire
