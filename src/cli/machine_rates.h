// MachineRates of this machine, measured: a streaming read of memory and multiply-adds in
// registers, on all cores at once (base/ceilings.h).
#pragma once

#include "base/status.h"
#include "plan/roofline.h"

namespace quire {

// Takes about half a second and 64 MiB a core. kResourceExhausted without that memory.
StatusOr<MachineRates> MeasureRates();

}  // namespace quire
