// MemoryPlan: how a machine's memory is divided: weights, work memory, the budget of the KV pages.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"
#include "plan/accelerators.h"
#include "plan/kv_model.h"
#include "plan/mark.h"

namespace quire {

// What a user says of it. At most one of total_bytes and gpus.
struct MemoryRequest {
  std::optional<uint64_t> total_bytes = {};       // --memory
  std::optional<AcceleratorSet> gpus = {};        // --gpus
  std::optional<double> cache_share = {};         // of the memory, for the KV pages; in (0, 1]
  std::optional<uint64_t> kv_bytes = {};          // --kv-memory: the budget itself
  std::optional<std::string> weights_dtype = {};  // of weights whose bytes no file tells
  uint64_t machine_bytes = 0;  // of this machine, where the user says nothing; 0: not known
  std::string machine_source = "free on this machine now";
};

struct MemoryPlan {
  uint64_t total_bytes = 0;
  std::string total_source = {};  // "--memory", "8 x H100 (data sheet)", "free on this machine"
  Mark total_mark = Mark::kExact;
  std::optional<uint64_t> weight_bytes = {};  // unset: not known, and counted as 0
  std::string weight_source = {};             // "tensors of the file", "70.6 billion x 16 bits"
  Mark weight_mark = Mark::kExact;
  uint64_t work_bytes = 0;  // kept for activations, logits and the program; estimated
  uint64_t budget_bytes = 0;
  std::string budget_source = {};  // "half of the memory", "what weights and work memory leave"

  uint64_t known_weight_bytes() const { return weight_bytes.value_or(0); }
};

// kInvalidArgument: two amounts of memory, a share out of range, an unknown weights_dtype, nothing
// said and nothing known of the machine. A model that does not fit is no error: budget 0.
StatusOr<MemoryPlan> MakeMemoryPlan(const KvModel& model, const MemoryRequest& request);

// Bits of a weight with its part of the scales: "bf16" is 16, "q4_k" 4.5. kInvalidArgument lists
// them.
StatusOr<double> BitsOfWeights(const std::string& dtype);

}  // namespace quire
