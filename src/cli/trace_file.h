// Recorded requests of others as a workload: their times, lengths and, where known, what they
// share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/workload.h"

namespace quire {

struct TraceOptions {
  double scale = 1;    // of all lengths, > 0
  double speed = 1;    // how many times as fast as recorded; 0: all at once
  uint32_t limit = 0;  // the first so many requests; 0: all
};

// Two formats, told apart by their first line:
//   JSON lines, as Mooncake's: {"timestamp": ms, "input_length": n, "output_length": n,
//     "hash_ids": [...]}; an id stands for 512 tokens (the last one for the rest) and all before
//     it, so equal ids give equal tokens. Without "hash_ids" nothing is shared.
//   CSV, as Azure's: TIMESTAMP,ContextTokens,GeneratedTokens with 2023-11-16 18:17:03.97996.
// Lengths are at least 1. Errors: kInvalidFile with the line.
StatusOr<std::vector<PlannedRequest>> ReadTraceFile(const std::string& path,
                                                    const TraceOptions& options);

}  // namespace quire
