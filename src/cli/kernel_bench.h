// `quire bench --kernels`: each kernel on its own: products of the common weight types, attention
// at the head sizes that models have, and the
// model's own of both if one is given.
#pragma once

#include "base/status.h"
#include "cli/engine_flags.h"

namespace quire {

// Prints a table, or with `json` a list. Each row is a ratio to what this machine does in the same
// run: bytes to a plain streaming read, arithmetic to a loop of register-only multiplies.
// all_shapes: every weight type and more shapes of attention, for some minutes.
StatusOr<int> RunKernelBench(const EngineFlags& flags, int num_threads, bool all_shapes, bool json);

}  // namespace quire
