// Sizes, times and counts as people write them: "8GiB", "500ms", "25k".
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include "base/status.h"

namespace quire {

// "512 MiB", "4GiB", "1.5G" to bytes. Units: B, KB to TB (powers of 1000), KiB to TiB, and K, M, G,
// T (powers of 1024). A bare number is an error: it could be MiB as well as bytes.
StatusOr<uint64_t> ParseBytes(std::string_view text);
// "500ms", "10s", "5m", "1h". A bare number is an error, except 0.
StatusOr<std::chrono::milliseconds> ParseDuration(std::string_view text);
// "4096", "25k", "1.5M", "70B" (powers of 1000; B, as of parameters, is 10^9).
StatusOr<uint64_t> ParseCount(std::string_view text);

}  // namespace quire
