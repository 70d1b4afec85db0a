// KvWriter: K and V of a step's rows go to their pages, and pages that are full then are sealed.
//
// Not here: which rows and pages (step_plan.h), what the bytes mean (codec/).
//
// Threading: Begin by one thread; Append by any number at the same time, for different rows.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "attention/kernels.h"
#include "model/step_plan.h"

namespace quire {

class KvWriter {
 public:
  // Steps of up to max_sequences sequences allocate nothing.
  KvWriter(const AttentionKernels& kernels, size_t max_sequences);

  // A step begins.
  void Begin(size_t num_sequences) { bad_layers_.assign(num_sequences, -1); }

  // Writes all KV heads of some rows of one layer; k [append.num_rows, num_kv_heads, head_dim_k],
  // v alike. Rows before the sequence's first_append are passed over. A page that has all its
  // tokens by it is sealed.
  void Append(StepPlan& plan, int layer, const StepPlan::Append& append, const float* k,
              const float* v);

  // The first layer of the step in which K or V of the sequence was not finite; -1: none.
  int bad_layer(size_t sequence) const { return bad_layers_[sequence]; }
  uint64_t num_saturated() const { return num_saturated_.load(std::memory_order_relaxed); }

 private:
  // All KV heads of a page of one layer of its group.
  static void Seal(const AttentionShape& shape, uint32_t layer, const KvView& kv, uint32_t page);

  const AttentionKernels& kernels_;
  std::vector<int> bad_layers_;  // of each sequence; atomic while a step runs
  std::atomic<uint64_t> num_saturated_{0};
};

}  // namespace quire
