// What a piece of work costs beside another, for tests that say "no more than so many times that".
// Only tests include this file.
//
// Machines are shared: for seconds at a time a neighbour slows a core's caches and clock, which CPU
// time does not leave out. So both sides run in turn, the least of each counts, and before it fails
// the comparison goes on for ten times as many rounds. A cost of a worse order fails all the same.
#pragma once

#include <gtest/gtest.h>

#include <functional>

namespace quire {

using Work = std::function<void()>;

// The least CPU seconds of the calling thread that `num_runs` runs of `work` took.
double LeastSeconds(int num_runs, const Work& work);

struct CostBound {
  double factor;             // `dear` may take so many times what `cheap` takes
  double slack_seconds = 0;  // and so much more: what the clock and outgrown caches add
  int num_rounds = 3;        // at least so many runs of each; ten times as many before it fails
};

// Whether `dear` stays within the bound. Under a sanitizer both run once and the answer is yes: its
// own bookkeeping keeps no such bound, and the release build runs the same test.
testing::AssertionResult CostsAtMost(CostBound bound, const Work& cheap, const Work& dear);

}  // namespace quire
