// WakeWord: a counter that one thread raises and others sleep on, with a time limit, in the kernel.
//
// std::atomic::wait has no time limit, and a condition variable wants a lock on the raising side.
// Raise takes none, and makes a system call only if somebody sleeps.
//
// Threading: any.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <climits>
#include <cstdint>
#include <ctime>

namespace quire {

class WakeWord {
 public:
  uint32_t value() const { return value_.load(std::memory_order_acquire); }

  // What was written before is visible to those who see the new value.
  void Raise() {
    value_.fetch_add(1, std::memory_order_seq_cst);
    if (num_sleepers_.load(std::memory_order_seq_cst) > 0)
      syscall(SYS_futex, &value_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
  }

  // Returns when the value is another than `seen`, or after about `most`; or for no reason.
  void Wait(uint32_t seen, std::chrono::milliseconds most) const {
    const timespec limit = {.tv_sec = most.count() / 1000,
                            .tv_nsec = most.count() % 1000 * 1'000'000};
    num_sleepers_.fetch_add(1, std::memory_order_seq_cst);
    syscall(SYS_futex, &value_, FUTEX_WAIT_PRIVATE, seen, &limit, nullptr, 0);
    num_sleepers_.fetch_sub(1, std::memory_order_seq_cst);
  }

 private:
  static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));
  mutable std::atomic<uint32_t> value_{0};
  mutable std::atomic<uint32_t> num_sleepers_{0};
};

}  // namespace quire
