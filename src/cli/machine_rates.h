// MachineRates of this machine, measured: a streaming read of memory, and the fastest multiply-adds
// in registers (f32 or integers), on all cores at once (base/ceilings.h).
#pragma once

#include "base/status.h"
#include "plan/roofline.h"

namespace quire {

// Takes about a second and 64 MiB a core. kResourceExhausted without that memory.
StatusOr<MachineRates> MeasureRates();

}  // namespace quire
