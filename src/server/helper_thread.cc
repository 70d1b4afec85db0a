#include "server/helper_thread.h"

#include <exception>
#include <utility>

#include "server/http/serving_thread.h"

namespace quire {

HelperThread::HelperThread(std::function<void(std::string_view)> on_trouble)
    : on_trouble_(std::move(on_trouble)), thread_([this] { Run(); }) {}

HelperThread::~HelperThread() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  has_jobs_.notify_one();
  thread_.join();
}

void HelperThread::Post(std::function<void()> job, std::function<void()> on_failure) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back({std::move(job), std::move(on_failure)});
  }
  has_jobs_.notify_one();
}

void HelperThread::Run() {
  BeServingThread("quire-helper");
  for (;;) {
    Job job;
    {
      std::unique_lock lock(mutex_);
      has_jobs_.wait(lock, [&] { return ends_ || !jobs_.empty(); });
      if (jobs_.empty()) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    RunJob(job);
  }
}

void HelperThread::RunJob(const Job& job) const {
  try {
    return job.work();
  } catch (const std::exception& error) {
    if (on_trouble_) on_trouble_(error.what());
  }
  try {
    job.on_failure();
  } catch (const std::exception&) {
    // No memory even for that: the client waits until it gives up.
  }
}

}  // namespace quire
