// ProgressLine: one line of text on stderr while something long runs: redrawn on a terminal;
// elsewhere a line each half minute. Nothing in the first second.
#pragma once

#include <chrono>
#include <string>

namespace quire {

class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();  // clears the line
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void Show(const std::string& text);

 private:
  const bool is_terminal_;
  std::chrono::steady_clock::time_point next_;
  bool drawn_ = false;
};

}  // namespace quire
