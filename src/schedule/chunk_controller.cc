#include "schedule/chunk_controller.h"

#include <algorithm>
#include <cmath>

namespace quire {

ChunkController::ChunkController(const ChunkOptions& options)
    : options_(options), budget_(options.most_tokens) {}

uint32_t ChunkController::Budget(uint32_t num_decodes) const {
  return std::max(static_cast<uint32_t>(budget_), num_decodes + options_.least_tokens);
}

void ChunkController::Measure(uint32_t num_tokens, double ms) {
  if (options_.target_ms <= 0 || num_tokens == 0 || !(ms > 0)) return;
  const double change = std::clamp(std::sqrt(options_.target_ms / ms), 0.5, 2.0);
  // Rises only from what was tried, with one token of rounding.
  const bool is_full = num_tokens + 1 >= budget_;
  if (change > 1 && !is_full) return;
  const double tried = change < 1 ? std::min<double>(budget_, num_tokens) : budget_;
  budget_ = std::clamp<double>(tried * change, options_.least_tokens,
                               std::max(options_.most_tokens, options_.least_tokens));
}

}  // namespace quire
