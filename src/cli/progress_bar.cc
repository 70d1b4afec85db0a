#include "cli/progress_bar.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

namespace quire {

using Clock = std::chrono::steady_clock;

ProgressBar::ProgressBar(std::string label)
    : label_(std::move(label)),
      enabled_(isatty(STDERR_FILENO) == 1),
      next_draw_(Clock::now() + std::chrono::milliseconds(200)) {}

ProgressBar::~ProgressBar() {
  if (drawn_) fmt::print(stderr, "\r\033[K");
}

void ProgressBar::Show(uint64_t done_bytes, uint64_t total_bytes) {
  if (!enabled_ || total_bytes == 0 || Clock::now() < next_draw_) return;
  next_draw_ = Clock::now() + std::chrono::milliseconds(50);
  drawn_ = true;
  constexpr int kWidth = 32;
  const double share = static_cast<double>(done_bytes) / static_cast<double>(total_bytes);
  const auto filled = static_cast<int>(share * kWidth);
  fmt::print(stderr, "\r{} [{}{}] {:3.0f} % of {} MB", label_, std::string(filled, '#'),
             std::string(kWidth - filled, '.'), share * 100, total_bytes / 1000000);
  std::fflush(stderr);
}

}  // namespace quire
