// AttentionMeter: how fast the attention kernels are, as ratios inside one run: to the f32 FMA peak
// and to a streaming read of the same pages (base/ceilings.h), each timed beside the kernel in
// every repetition. Figures of different runs must not be compared: neighbours and the clock move
// them by 20 % and more.
//
// For benchmarks. Threads: one caller; the meter has a team of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "attention/kernels.h"
#include "base/ceilings.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/threads.h"

namespace quire {

// Rows of sequences that are alike. In cache: one sequence with one KV head for each thread, whose
// pages stay in its caches. In memory: many sequences with four KV heads in shuffled pages, more
// than any cache holds.
struct AttentionTest {
  uint32_t head_dim = 128;
  uint32_t group_size = 4;
  uint32_t num_rows = 1;  // new tokens of a sequence
  uint32_t depth = 0;     // tokens before them
  bool in_memory = false;
  uint32_t page_size = 64;
  KvCodec codec = KvCodec::kF16;
};

std::string NameOf(const AttentionTest& test);  // such as "decode d4096 hd128 g4 f16 memory"

// The tests that the goals name: decode in cache and in memory, 64 rows after 4,096 tokens, and
// prefill from the start; head_dim 64, 128 and 256, groups of 1, 4 and 8; and kivi4 beside f16 in
// some of them. `all` adds other groups, depths, chunks and page sizes.
std::vector<AttentionTest> AttentionTests(bool all = false);

struct AttentionSpeed {
  double ns_per_key = 0;             // of one thread, for one row, KV head and key: the best
  double macs_per_second = 0;        // of all threads: the best
  double of_fma_peak = 0;            // best over best
  double of_read_roof = 0;           // median of the repetitions' ratios; 0 unless in memory
  double read_bytes_per_second = 0;  // the roof, median
};

class AttentionMeter {
 public:
  AttentionMeter(InstructionSet set, int num_threads);

  // kResourceExhausted if there is no memory for the pages (256 MiB) and the scratch.
  StatusOr<AttentionSpeed> Measure(const AttentionTest& test, int repetitions);

 private:
  // Wall time of job(worker) on all workers: virtual machines misjudge CPU time by tens of percent.
  template <class Job>
  double Seconds(Job&& job);
  double MacsPerSecond();
  double ReadBytesPerSecond();
  std::vector<std::byte*> PageTable(size_t page_bytes, size_t num_pages, bool shuffled);

  const AttentionKernels& kernels_;
  const Ceilings& ceilings_;
  ThreadTeam team_;
  AnonymousMemory pool_;
};

}  // namespace quire
