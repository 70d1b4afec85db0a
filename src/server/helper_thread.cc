#include "server/helper_thread.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>
#include <utility>

namespace quire {

void BeServingThread(const char* name) {
  pthread_setname_np(pthread_self(), name);
  // Linux counts nice values by thread. Refusal is no harm: it only gives way less.
  (void)setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), kServingNice);
}

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

double HelperThread::cpu_seconds() const {
  clockid_t clock = 0;
  timespec time = {};
  // The handle of a thread that runs is valid; const_cast since native_handle is not const.
  if (pthread_getcpuclockid(const_cast<std::thread&>(thread_).native_handle(), &clock) != 0 ||
      clock_gettime(clock, &time) != 0)
    return 0;
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace quire
