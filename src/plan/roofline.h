// Roofline: how long a prompt and a token take at least, from what must be read and computed:
// weights once a step, each sequence's KV once a step, 2 operations a weight and token, attention.
//
// Estimates, all of them: real kernels reach a part of the rates, and several machines wait for
// each other. A mixture of experts is taken to read other experts for each sequence until it has
// read all.
//
// Threads: pure functions.
// Paper: Williams et al., Roofline, CACM 2009; Pope et al., Efficiently Scaling Transformer
// Inference, 2022, sec. 2.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "plan/kv_model.h"
#include "plan/mark.h"

namespace quire {

struct MachineRates {
  double bytes_per_second = 0;
  double flops = 0;
  std::string source = {};  // "8 x H100, data sheet", "--bandwidth and --flops"
  Mark mark = Mark::kEstimated;
};

struct RooflineLoad {
  uint64_t weight_bytes = 0;
  uint64_t kv_bytes = 0;  // that a step reads for one sequence
  uint32_t num_users = 1;
  uint32_t tokens = 0;         // of each sequence
  uint32_t shared_tokens = 0;  // of the prompt, computed by somebody before
};

struct Roofline {
  MachineRates rates;
  double prefill_seconds = 0;  // of one prompt of all tokens that are not shared: TTFT
  bool prefill_is_compute_bound = true;
  double step_seconds = 0;  // a token for each of the users: TPOT
  bool step_is_compute_bound = false;
  double alone_seconds = 0;  // a token for one user
  // Users at which a step is as long to compute as to read; unset: reading takes longer at any
  // number, since each brings its own KV.
  std::optional<double> knee_users = {};
  double read_bytes = 0;  // of a step
  double step_flops = 0;  // of a step
  double prefill_flops = 0;
};

// Nothing if the number of parameters or a rate is not known. Requires: tokens > shared_tokens.
std::optional<Roofline> MakeRoofline(const KvModel& model, const RooflineLoad& load,
                                     const MachineRates& rates);

// Operations of attention for one token that sees `keys` keys before it.
double AttentionFlops(const KvModel& model, double keys);

}  // namespace quire
