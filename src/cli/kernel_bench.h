// `quire bench --kernels`: each kernel on its own, on the model's own matrices and head sizes.
#pragma once

#include "base/status.h"
#include "cli/engine_flags.h"

namespace quire {

// Prints a table, or with `json` a list. Each row is a ratio to what this machine does in the same
// run: bytes to a plain streaming read, arithmetic to a loop of register-only multiplies.
StatusOr<int> RunKernelBench(const EngineFlags& flags, int num_threads, bool json);

}  // namespace quire
