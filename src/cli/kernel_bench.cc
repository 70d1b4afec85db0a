#include "cli/kernel_bench.h"

#include "base/errors.h"

namespace quire {

StatusOr<int> RunKernelBench(const EngineFlags&, int, bool) {
  return Unsupported("--kernels is being written");
}

}  // namespace quire
