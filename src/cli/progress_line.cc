#include "cli/progress_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace quire {

using Clock = std::chrono::steady_clock;

ProgressLine::ProgressLine()
    : is_terminal_(isatty(STDERR_FILENO) == 1),
      next_(Clock::now() + std::chrono::seconds(is_terminal_ ? 1 : 30)) {}

ProgressLine::~ProgressLine() {
  if (drawn_ && is_terminal_) fmt::print(stderr, "\r\033[K");
}

void ProgressLine::Show(const std::string& text) {
  if (Clock::now() < next_) return;
  next_ = Clock::now() + (is_terminal_ ? Clock::duration(std::chrono::milliseconds(200))
                                       : Clock::duration(std::chrono::seconds(30)));
  if (is_terminal_)
    fmt::print(stderr, "\r\033[K{}", text);
  else
    fmt::print(stderr, "{}\n", text);
  std::fflush(stderr);
  drawn_ = true;
}

}  // namespace quire
