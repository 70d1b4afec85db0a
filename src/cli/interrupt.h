// Interrupt: Ctrl-C as a flag. While one is alive, SIGINT sets its flag and ends no process; a
// blocked read of the terminal returns with EINTR. One at a time.
#pragma once

#include <atomic>

namespace quire {

class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  const std::atomic<bool>* flag() const;
  bool is_set() const { return flag()->load(); }
  void Set();  // as if Ctrl-C had been pressed
  void Clear();
};

}  // namespace quire
