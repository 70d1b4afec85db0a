#include "base/threads.h"

#include <chrono>

#include "base/check.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace quire {
namespace {

constexpr auto kSpinTime = std::chrono::microseconds(20);

void Pause() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

// Returns once ready(word) holds.
template <class Word, class Ready>
void Await(std::atomic<Word>& word, Ready&& ready) {
  if (ready(word.load(std::memory_order_acquire))) return;
  const auto start = std::chrono::steady_clock::now();
  do {
    for (int i = 0; i < 64; ++i) {
      if (ready(word.load(std::memory_order_acquire))) return;
      Pause();
    }
  } while (std::chrono::steady_clock::now() - start < kSpinTime);
  for (;;) {
    const Word value = word.load(std::memory_order_acquire);
    if (ready(value)) return;
    word.wait(value, std::memory_order_acquire);
  }
}

// Counts on past the largest value: it is reached after some hours.
int Next(int count) { return static_cast<int>(static_cast<unsigned>(count) + 1u); }

}  // namespace

void DoneCounter::WaitFor(uint32_t total) {
  Await(count_, [=](uint32_t count) { return count >= total; });
}

ThreadTeam::ThreadTeam(int num_threads) : num_threads_(num_threads) {
  QUIRE_CHECK(num_threads >= 1);
  try {
    for (int worker = 1; worker < num_threads_; ++worker)
      threads_.emplace_back([this, worker] { WorkerLoop(worker); });
  } catch (...) {
    Stop();
    throw;
  }
}

ThreadTeam::~ThreadTeam() { Stop(); }

void ThreadTeam::Stop() {
  stopping_ = true;
  job_number_.fetch_add(1, std::memory_order_release);
  job_number_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadTeam::RunErased(ErasedJob call, void* job) {
  if (num_threads_ == 1) {
    call(job, 0);
    return;
  }
  call_ = call;
  job_ = job;
  job_number_.fetch_add(1, std::memory_order_release);
  job_number_.notify_all();
  call(job, 0);
  Barrier();
}

void ThreadTeam::WorkerLoop(int worker) {
  int seen = 0;
  for (;;) {
    Await(job_number_, [=](int number) { return number != seen; });
    seen = Next(seen);
    if (stopping_) return;
    call_(job_, worker);
    Barrier();
  }
}

void ThreadTeam::Barrier() {
  if (num_threads_ == 1) return;
  const int generation = generation_.load(std::memory_order_relaxed);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == num_threads_) {
    arrived_.store(0, std::memory_order_relaxed);
    next_item_.store(0, std::memory_order_relaxed);
    generation_.store(Next(generation), std::memory_order_release);
    generation_.notify_all();
    return;
  }
  Await(generation_, [=](int now) { return now != generation; });
}

}  // namespace quire
