// WorkerLimit: how many workers of a team take part in the next job.
//
// Workers meet at barriers, so one that the system holds up holds up all: beside a process that
// takes one of two cores, two workers are slower than one. A job that lost time to others therefore
// lowers the limit by one for a while; then one more is tried again. Each failed try doubles the
// while.
//
// Threads: one caller.
#pragma once

#include <algorithm>

namespace quire {

class WorkerLimit {
 public:
  explicit WorkerLimit(int num_threads) : num_threads_(num_threads), limit_(num_threads) {}

  int limit() const { return limit_; }

  // After a job of limit() workers: the largest part of its time that one of them was ready to run
  // and did not, how long it took, and the time now, in seconds.
  void Update(double lost_part, double job_seconds, double now) {
    if (job_seconds < kLeastJobSeconds) return;  // too short to tell
    if (lost_part > kLostPart && limit_ > 1) {
      // The first loss after a quiet time starts small; one right after a try does not.
      if (now - raised_at_ > kQuietSeconds) hold_seconds_ = kLeastHoldSeconds;
      --limit_;
      raise_at_ = now + hold_seconds_;
      hold_seconds_ = std::min(2 * hold_seconds_, kMostHoldSeconds);
    } else if (limit_ < num_threads_ && now >= raise_at_) {
      ++limit_;
      raised_at_ = now;
    }
  }

 private:
  static constexpr double kLostPart = 0.15;
  static constexpr double kLeastJobSeconds = 2e-4;
  static constexpr double kLeastHoldSeconds = 0.05;
  static constexpr double kMostHoldSeconds = 2.0;
  static constexpr double kQuietSeconds = 1.0;

  const int num_threads_;
  int limit_;
  double hold_seconds_ = kLeastHoldSeconds;
  double raise_at_ = 0;
  double raised_at_ = -kQuietSeconds;
};

}  // namespace quire
