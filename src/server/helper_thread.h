// HelperThread: the one thread that does what would keep the HTTP thread: reading JSON, rendering
// templates, tokenising, writing long JSON. It never waits for the engine: new requests wait for
// it.
//
// Jobs run one after the other, in the order in which they came; the bound on bodies
// (HttpLimits::all_body_bytes) bounds what waits. It gives way to the engine's workers, as the HTTP
// thread does (http/serving_thread.h).
//
// Threading: Post by any thread. The destructor runs what still waits.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace quire {

class HelperThread {
 public:
  HelperThread();
  ~HelperThread();

  void Post(std::function<void()> job);

 private:
  void Run();

  std::mutex mutex_;  // of the next two
  std::condition_variable has_jobs_;
  std::deque<std::function<void()>> jobs_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace quire
