// ThreadTeam: the workers that run one job together, stage by stage.
//
// The caller is worker 0; the others sleep between jobs. Inside a job every worker runs the same
// function and meets the others in ForEach or Barrier. Items are taken from a counter, so a busy
// neighbour costs its share only; who computes an item never changes a bit of it.
//
// A wait spins for some 20 us and then sleeps in the kernel.
//
// A team may spare workers: while other processes take the cores, fewer of its workers take part in
// a job (base/worker_limit.h). Those left out sleep.
//
// Threading: Run is called by one thread at a time. ForEach, Barrier: by every worker of the job,
// in the same order.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <type_traits>
#include <vector>

#include "base/worker_limit.h"

namespace quire {

// How many items of something are done, for workers that go on with what the items made.
//
// Threading: Add and WaitFor by any worker; Reset while no worker runs.
class DoneCounter {
 public:
  void Reset() { count_.store(0, std::memory_order_relaxed); }
  // One more is done; wakes those who wait for `total`. Sequentially consistent, or a wake-up could
  // be lost (threads.cc, StoreAndWake).
  void Add(uint32_t total) {
    if (count_.fetch_add(1, std::memory_order_seq_cst) + 1 == total) count_.notify_all();
  }
  // Returns when `total` are done; what they wrote is then visible.
  void WaitFor(uint32_t total);

 private:
  alignas(64) std::atomic<uint32_t> count_{0};
};

// Who takes part in a job: always all workers, or fewer while others take the cores.
enum class Workers { kAll, kSpared };

class ThreadTeam {
 public:
  // num_threads in 1 to kMostThreads, the caller included. Throws std::system_error, as std::thread
  // does, if the system refuses a thread.
  static constexpr int kMostThreads = 4095;
  explicit ThreadTeam(int num_threads, Workers workers = Workers::kAll);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int num_threads() const { return num_threads_; }

  // Runs job(worker) on the workers, worker in [0, num_threads), and returns when all are done.
  // With Workers::kSpared the first few of them may be all. Allocates nothing.
  template <class Job>
  void Run(Job&& job) {
    using Plain = std::remove_reference_t<Job>;
    RunErased([](void* j, int worker) { (*static_cast<Plain*>(j))(worker); },
              const_cast<void*>(static_cast<const void*>(&job)));
  }

  // Runs item(i) for every i in [0, num_items), each once, spread over the workers; returns when
  // all are done. What the items wrote is then visible to all workers.
  template <class Item>
  void ForEach(uint32_t num_items, Item&& item) {
    if (num_active_ == 1) {
      for (uint32_t i = 0; i < num_items; ++i) item(i);
      return;
    }
    for (uint32_t i = next_item_.fetch_add(1, std::memory_order_relaxed); i < num_items;
         i = next_item_.fetch_add(1, std::memory_order_relaxed))
      item(i);
    Barrier();
  }

  // Returns when all workers have called it.
  void Barrier();

 private:
  using ErasedJob = void (*)(void* job, int worker);
  void RunErased(ErasedJob call, void* job);
  void WorkerLoop(int worker);
  // Tells the workers of the next job, or that there is none.
  void Publish(int num_active);
  void Stop();

  // Calls the job and keeps what part of its time the worker was ready and did not run.
  void CallMeasured(int worker);

  const int num_threads_;
  const Workers workers_;
  std::vector<std::thread> threads_;
  ErasedJob call_ = nullptr;
  void* job_ = nullptr;
  int num_active_ = 1;              // in this job; written while no other worker runs one
  std::vector<double> lost_parts_;  // of each worker, in this job
  WorkerLimit limit_;

  // Number of the job and, in the low 12 bits, how many workers take part; 0: stop. One word, so
  // that a worker that was left out cannot mix two jobs up.
  alignas(64) std::atomic<uint32_t> job_word_{0};
  alignas(64) std::atomic<uint32_t> next_item_{0};
  alignas(64) std::atomic<int> arrived_{0};
  alignas(64) std::atomic<int> generation_{0};
};

}  // namespace quire
