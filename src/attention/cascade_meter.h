// CascadeMeter: what it brings that sequences which share pages read them together, as a ratio of
// the same step with and without, timed in turns.
//
// For benchmarks. Threads: one caller; the meter has a team of its own.
#pragma once

#include <cstdint>
#include <string>

#include "attention/kernels.h"
#include "base/status.h"
#include "base/threads.h"

namespace quire {

// A decode step of sequences that have `shared` tokens in common and then `own` ones each.
struct CascadeTest {
  uint32_t num_sequences = 32;
  uint32_t shared = 2048;
  uint32_t own = 64;
  uint32_t num_kv_heads = 3;
  uint32_t group_size = 3;
  uint32_t head_dim = 64;
  uint32_t num_layers = 2;  // of pages of their own
  uint32_t page_size = 64;
  KvCodec codec = KvCodec::kF16;
};

std::string NameOf(const CascadeTest& test);  // such as "cascade 32 x (2048 + 64) hd64 3x3 f16"

struct CascadeSpeed {
  double speedup = 0;            // time without over time with, median of the repetitions
  double ns_per_key = 0;         // of one thread, for one row, KV head and key: the best with
  double of_fma_peak = 0;        // with: best over best
  double of_fma_peak_alone = 0;  // without
  double chunks_alone = 0;       // chunks read without for each that is read with
  double plan_seconds = 0;       // of Build with, the best
};

class CascadeMeter {
 public:
  CascadeMeter(InstructionSet set, int num_threads);

  // kResourceExhausted if there is no memory for the pages and the scratch.
  StatusOr<CascadeSpeed> Measure(const CascadeTest& test, int repetitions);

 private:
  const InstructionSet set_;
  ThreadTeam team_;
};

}  // namespace quire
