// HelperThread: the one thread that does what would keep the HTTP thread: reading JSON, rendering
// templates, tokenising, writing long JSON. It never waits for the engine: new requests wait for
// it.
//
// Jobs run one after the other, in the order in which they came; the bound on bodies
// (HttpLimits::all_body_bytes) bounds what waits. It gives way to the engine's workers, as the HTTP
// thread does (http/serving_thread.h).
//
// Threading: Post by any thread. The destructor runs what still waits.
// Errors: a job that throws (the standard library's, when memory runs out) ends that job alone.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string_view>
#include <thread>

namespace quire {

class HelperThread {
 public:
  // `on_trouble` hears, on this thread, what went wrong in a job; it must not throw.
  explicit HelperThread(std::function<void(std::string_view)> on_trouble);
  ~HelperThread();

  // `on_failure` runs here in place of what the job did not come to.
  void Post(std::function<void()> job, std::function<void()> on_failure);

 private:
  struct Job {
    std::function<void()> work, on_failure;
  };
  void Run();
  void RunJob(const Job& job) const;

  const std::function<void(std::string_view)> on_trouble_;

  std::mutex mutex_;  // of the next two
  std::condition_variable has_jobs_;
  std::deque<Job> jobs_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace quire
