// CallResult: what one call of `quire bench serve` felt; SumUp: what all of them did, under the
// names of `vllm bench serve`.
//
//   ttft  from the call's start to its first chunk with a choice
//   itl   each gap between such chunks
//   tpot  the time after the first chunk, over the answer's tokens but the first
//   e2el  from the call's start to its last such chunk
//
// Threading: plain values.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace quire {

struct CallResult {
  double started = 0;          // seconds since the start of the measurement
  std::vector<double> chunks;  // times of those with a choice
  uint32_t prompt_tokens = 0, output_tokens = 0, cached_tokens = 0;
  std::string error;  // empty: it has succeeded
};

// "ttft:500": at most that many milliseconds. A call is good when it is within all of them.
struct Goal {
  std::string metric;  // ttft, tpot or e2el
  double milliseconds = 0;
};
StatusOr<Goal> ParseGoal(const std::string& text);

struct SumUpOptions {
  std::vector<double> percentiles = {95, 99};
  std::vector<Goal> goals = {};
  double duration = 0;  // seconds, of the whole measurement
  bool is_detailed = false;
};
// The report's keys from "duration" on.
void SumUp(std::span<const CallResult> results, const SumUpOptions& options,
           nlohmann::ordered_json& report);

// The report as lines for people.
std::string TableOf(const nlohmann::ordered_json& report, const SumUpOptions& options);

}  // namespace quire
