// Accelerators: memory, memory bandwidth and arithmetic of machines that models are served on, as
// their makers publish them. For plans: this engine runs on CPUs so far.
//
// Threads: constants and pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/status.h"

namespace quire {

struct Accelerator {
  std::string_view name;
  uint64_t memory_bytes;
  double bytes_per_second;
  double flops;  // multiply and add are two; 16-bit inputs, f32 sums, no sparsity
};

std::span<const Accelerator> Accelerators();

struct AcceleratorSet {
  const Accelerator* kind = nullptr;
  uint32_t count = 0;  // 1 to 4096
};

// "8xH100", "H100". kInvalidArgument: the message lists the names.
StatusOr<AcceleratorSet> ParseAccelerators(std::string_view text);

}  // namespace quire
