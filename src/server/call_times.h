// CallTimes: how long requests may take and streams may be silent.
//
// Threading: plain values.
#pragma once

#include <chrono>
#include <optional>

#include "server/api/api_error.h"

namespace quire {

struct CallTimes {
  std::chrono::milliseconds keep_alive{15'000};  // silence of a stream before a comment; 0: none
  std::chrono::milliseconds queue_timeout{0};    // 0: none
  std::chrono::milliseconds request_timeout{0};  // 0: none
};

// The error that ends what has taken longer than that by now.
std::optional<ApiError> Overdue(const CallTimes& times, std::chrono::steady_clock::time_point start,
                                bool is_queued);

}  // namespace quire
