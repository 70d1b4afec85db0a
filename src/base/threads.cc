#include "base/threads.h"

#include <time.h>

#include <algorithm>
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

double SecondsOf(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}
double WallSeconds() { return SecondsOf(CLOCK_MONOTONIC); }
double ThreadCpuSeconds() { return SecondsOf(CLOCK_THREAD_CPUTIME_ID); }

// What this thread has slept in Await, since somebody set it to 0.
thread_local double slept_seconds = 0;

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
  const double asleep = WallSeconds();
  for (;;) {
    const Word value = word.load(std::memory_order_acquire);
    if (ready(value)) break;
    word.wait(value, std::memory_order_acquire);
  }
  slept_seconds += WallSeconds() - asleep;
}

// Wakes whoever sleeps in Await(word) for `value`. The store must be sequentially consistent:
// notify first looks whether anyone sleeps, and that load may otherwise come before the store is
// seen, on x86 too. A worker that goes to sleep in between would sleep for ever (libstdc++'s
// atomic_wait.h counts sleepers in a word of its own).
template <class Word>
void StoreAndWake(std::atomic<Word>& word, Word value) {
  word.store(value, std::memory_order_seq_cst);
  word.notify_all();
}

// Counts on past the largest value: it is reached after some hours.
int Next(int count) { return static_cast<int>(static_cast<unsigned>(count) + 1u); }

constexpr uint32_t kActiveMask = ThreadTeam::kMostThreads;  // of a job's word

}  // namespace

void DoneCounter::WaitFor(uint32_t total) {
  Await(count_, [=](uint32_t count) { return count >= total; });
}

ThreadTeam::ThreadTeam(int num_threads, Workers workers)
    : num_threads_(num_threads),
      workers_(workers),
      lost_parts_(static_cast<size_t>(std::max(num_threads, 1))),
      limit_(num_threads) {
  QUIRE_CHECK(num_threads >= 1 && num_threads <= kMostThreads);
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
  Publish(0);
  for (std::thread& thread : threads_) thread.join();
}

void ThreadTeam::Publish(int num_active) {
  const uint32_t word = job_word_.load(std::memory_order_relaxed);
  StoreAndWake(job_word_,
               (word & ~kActiveMask) + kActiveMask + 1 + static_cast<uint32_t>(num_active));
}

void ThreadTeam::RunErased(ErasedJob call, void* job) {
  if (num_threads_ == 1) {
    call(job, 0);
    return;
  }
  num_active_ = limit_.limit();
  call_ = call;
  job_ = job;
  const double start = WallSeconds();
  if (num_active_ > 1) Publish(num_active_);
  CallMeasured(0);
  Barrier();
  if (workers_ == Workers::kAll) return;
  const double now = WallSeconds();
  limit_.Update(*std::max_element(lost_parts_.begin(), lost_parts_.begin() + num_active_),
                now - start, now);
}

void ThreadTeam::CallMeasured(int worker) {
  if (workers_ == Workers::kAll) return call_(job_, worker);
  slept_seconds = 0;
  const double wall = WallSeconds(), cpu = ThreadCpuSeconds();
  call_(job_, worker);
  const double lasted = WallSeconds() - wall;
  const double lost = lasted - (ThreadCpuSeconds() - cpu) - slept_seconds;
  lost_parts_[static_cast<size_t>(worker)] = lasted > 0 ? lost / lasted : 0;
}

void ThreadTeam::WorkerLoop(int worker) {
  uint32_t seen = 0;
  for (;;) {
    Await(job_word_, [=](uint32_t word) { return word != seen; });
    seen = job_word_.load(std::memory_order_acquire);
    const auto num_active = static_cast<int>(seen & kActiveMask);
    if (num_active == 0) return;
    if (worker >= num_active) continue;
    CallMeasured(worker);
    Barrier();
  }
}

void ThreadTeam::Barrier() {
  // Before arriving: once all others have, worker 0 may begin a job of another number.
  const int num_active = num_active_;
  if (num_active == 1) return;
  const int generation = generation_.load(std::memory_order_relaxed);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == num_active) {
    arrived_.store(0, std::memory_order_relaxed);
    next_item_.store(0, std::memory_order_relaxed);
    StoreAndWake(generation_, Next(generation));
    return;
  }
  Await(generation_, [=](int now) { return now != generation; });
}

}  // namespace quire
