// ProgressBar: one line on stderr while something long runs. Nothing where stderr is no terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace quire {

class ProgressBar {
 public:
  explicit ProgressBar(std::string label);
  ~ProgressBar();  // clears the line
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // Draws at most some 20 times a second; the first time after a fifth of a second, so that what is
  // quick shows nothing.
  void Show(uint64_t done_bytes, uint64_t total_bytes);

 private:
  const std::string label_;
  const bool enabled_;
  std::chrono::steady_clock::time_point next_draw_;
  bool drawn_ = false;
};

}  // namespace quire
