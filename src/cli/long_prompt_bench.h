// `quire bench throughput --long-prompt`: what those who wait for their next token feel of a long
// prompt that comes, and what its user feels of them.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "cli/engine_flags.h"

namespace quire {

struct LongPromptFlags {
  EngineFlags engine;
  uint32_t long_prompt = 0, num_decoding = 8;
  uint32_t prompt_len = 256;  // of those that decode
  uint64_t seed = 1;
  uint32_t repetitions = 1;
  bool json = false;
};

StatusOr<int> RunLongPromptBench(const LongPromptFlags& flags);

}  // namespace quire
