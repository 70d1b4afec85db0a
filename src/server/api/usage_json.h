// What a call cost: `usage`, llama.cpp's `timings` and `quire` of an answer.
//
// Threading: pure functions; they read Answers that the engine may still write.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "cache/prefix_match.h"
#include "engine/answer.h"

namespace quire {

// Sums over all prompts and choices of a call, with those that are sampled but not told (best_of).
struct CallCosts {
  uint64_t prompt_tokens = 0;      // each prompt once, however many choices
  uint64_t completion_tokens = 0;  // sampled, with those that ended an answer or were cut off
  uint64_t cached_tokens = 0;
  uint64_t cache_write_tokens = 0;
  // The longest of any prompt or choice, as they run side by side.
  double queue_seconds = 0;
  double prompt_seconds = 0;
  double decode_seconds = 0;                     // of the tokens after the first
  MatchStop match_stop = MatchStop::kNamespace;  // of the first prompt
  uint32_t num_preemptions = 0;
};

// Tokens sampled by `answer` so far.
uint64_t NumSampled(const Answer& answer);
// Is PromptReport whole?
bool HasPromptReport(const Answer& answer);

// Requires: Requests with keeps_times.
CallCosts CostsOf(std::span<const std::shared_ptr<Answer>> answers);

// {"prompt_tokens",...}: always the same keys, only numbers.
void AppendUsage(std::string& json, const CallCosts& costs);
void AppendTimings(std::string& json, const CallCosts& costs);
void AppendQuire(std::string& json, const CallCosts& costs, std::optional<int64_t> retained_until);

}  // namespace quire
