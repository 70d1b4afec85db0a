// ChunkController: the token budget of a step from measured step times, so that tokens come at
// least every target (--target-itl). Chunks never change a bit, so the budget may follow the clock.
//
// The budget goes up or down by the square root of target / time, at most by half or double: with
// a time of a + b x tokens, it comes to where the time is the target from any start. A step that
// did not use the budget tells nothing when it was quick.
//
// Not here: the clock; the caller measures. Decodes are never held back for the target: Budget()
// leaves prompts their least chunk beside them.
//
// Threading: not thread-safe; owned by the engine thread.
#pragma once

#include <cstdint>

namespace quire {

struct ChunkOptions {
  double target_ms = 0;        // of a step; 0: the budget is most_tokens always
  uint32_t least_tokens = 16;  // of a chunk, however slow
  uint32_t most_tokens = 512;  // of a step
};

class ChunkController {
 public:
  explicit ChunkController(const ChunkOptions& options);

  // For ScheduleLimits::token_budget.
  uint32_t Budget(uint32_t num_decodes) const;
  // A step of so many tokens took that long.
  void Measure(uint32_t num_tokens, double ms);

 private:
  const ChunkOptions options_;
  double budget_;
};

}  // namespace quire
