// `quire bench throughput`: many requests at once: tokens a second, times that users feel, and how
// the KV memory was used.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/engine_flags.h"
#include "cli/workload.h"

namespace quire {

struct ThroughputFlags {
  EngineFlags engine;
  WorkloadOptions workload;  // but for its lengths
  std::string prompt_len = "256", output_len = "64";
  std::string trace;
  double trace_scale = 1, trace_speed = 1;
  uint32_t limit = 0;
  bool distinct = false;
  uint32_t repetitions = 1;
  bool keeps_cache = false;  // between repetitions
  std::vector<uint32_t> batched;
  uint32_t long_prompt = 0, decoding = 8;
  bool json = false;
};

// The flags must outlive the parsing.
CLI::App* AddThroughputBench(CLI::App& bench, ThroughputFlags& flags);
StatusOr<int> RunThroughputBench(ThroughputFlags flags);

}  // namespace quire
