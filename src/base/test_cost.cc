#include "base/test_cost.h"

#include <time.h>

#include <algorithm>

namespace quire {
namespace {

double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

#ifdef QUIRE_SANITIZED
constexpr bool kIsBounded = false;
#else
constexpr bool kIsBounded = true;
#endif

}  // namespace

double LeastSeconds(int num_runs, const Work& work) {
  double least = 1e9;
  for (int i = 0; i < num_runs; ++i) {
    const double start = CpuSeconds();
    work();
    least = std::min(least, CpuSeconds() - start);
  }
  return least;
}

testing::AssertionResult CostsAtMost(CostBound bound, const Work& cheap, const Work& dear) {
  double cheap_seconds = 1e9, dear_seconds = 1e9;
  for (int round = 1; round <= 10 * bound.num_rounds; ++round) {
    cheap_seconds = std::min(cheap_seconds, LeastSeconds(1, cheap));
    dear_seconds = std::min(dear_seconds, LeastSeconds(1, dear));
    if (!kIsBounded) return testing::AssertionSuccess();
    if (round >= bound.num_rounds &&
        dear_seconds <= bound.factor * cheap_seconds + bound.slack_seconds)
      return testing::AssertionSuccess();
  }
  return testing::AssertionFailure()
         << dear_seconds * 1e6 << " us, where " << bound.factor << " times " << cheap_seconds * 1e6
         << " us and " << bound.slack_seconds * 1e6 << " us more were allowed";
}

}  // namespace quire
