#include "server/helper_thread.h"

#include <utility>

#include "server/http/serving_thread.h"

namespace quire {

HelperThread::HelperThread() : thread_([this] { Run(); }) {}

HelperThread::~HelperThread() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  has_jobs_.notify_one();
  thread_.join();
}

void HelperThread::Post(std::function<void()> job) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  has_jobs_.notify_one();
}

void HelperThread::Run() {
  BeServingThread("quire-helper");
  for (;;) {
    std::function<void()> job;
    {
      std::unique_lock lock(mutex_);
      has_jobs_.wait(lock, [&] { return ends_ || !jobs_.empty(); });
      if (jobs_.empty()) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    job();
  }
}

}  // namespace quire
