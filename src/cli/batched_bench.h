// `quire bench throughput --batched`: speed of N prompts, and of N sequences that decode together:
// what llama-batched-bench measures.
//
// First all prompts are computed; then each gets one own token and decodes, so that every step of
// the second part has a row of each sequence, and the two speeds are clean.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "cli/engine_flags.h"
#include "cli/workload.h"

namespace quire {

struct BatchedFlags {
  EngineFlags engine;
  WorkloadOptions workload;  // its number of requests is not used
  std::vector<uint32_t> counts;
  uint32_t repetitions = 1;
  bool json = false;
};

StatusOr<int> RunBatchedBench(const BatchedFlags& flags);

}  // namespace quire
