// PromptSet: what `quire bench serve` asks for: prompts as token ids or as text, the length of each
// answer, and when each is asked.
//
// Data sets bear the names of `vllm bench serve`: random (and prefix_repetition, the same with
// several shared beginnings) and sharegpt, recorded conversations of which the first turn is asked.
//
// Threading: plain values.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/workload.h"

namespace quire {

struct BenchPrompt {
  nlohmann::json prompt = {};  // a string, or a list of ids
  uint32_t output_len = 1;
  double arrival_seconds = 0;
};

// Random prompts. As text a token stands as one common English word with a space before it, which
// is one token in most vocabularies; what it came to is in the answer's usage.
std::vector<BenchPrompt> RandomPrompts(const WorkloadOptions& options, uint32_t num_tokens,
                                       bool as_ids);

struct ShareGptOptions {
  std::string path =
      {};  // a JSON list of {"conversations": [{"from": "human", "value"}, {"from": ..}]}
  uint32_t num_requests = 1000;
  uint32_t output_len = 0;  // 0: as long as the recorded answer
  double rate = 0;
  uint64_t seed = 0;
  uint32_t max_len = 0;  // longer ones are left out, prompt and answer together; 0: no limit
  std::function<StatusOr<uint32_t>(const std::string& text)> count_tokens = {};
};
// Draws from the recorded conversations in random order, those with two turns and more. kNotFound,
// kInvalidFile with the file's name.
StatusOr<std::vector<BenchPrompt>> ShareGptPrompts(const ShareGptOptions& options);

}  // namespace quire
