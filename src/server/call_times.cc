#include "server/call_times.h"

#include <string>

namespace quire {
namespace {

ApiError TimedOut(const char* code, std::chrono::milliseconds limit, const char* flag) {
  return {.status = 503,
          .type = "server_error",
          .code = code,
          .message = "The request took longer than the " + std::to_string(limit.count()) +
                     " ms that " + flag + " allows.",
          .retry_after_s = 1};
}

}  // namespace

std::optional<ApiError> Overdue(const CallTimes& times, std::chrono::steady_clock::time_point start,
                                bool is_queued) {
  const auto spent = std::chrono::steady_clock::now() - start;
  if (times.request_timeout.count() > 0 && spent > times.request_timeout)
    return TimedOut("request_timeout", times.request_timeout, "--request-timeout");
  if (is_queued && times.queue_timeout.count() > 0 && spent > times.queue_timeout)
    return TimedOut("queue_timeout", times.queue_timeout, "--queue-timeout");
  return std::nullopt;
}

}  // namespace quire
