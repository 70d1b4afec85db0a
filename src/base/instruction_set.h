// InstructionSet: which of the compiled kernels run. One program holds them all and picks at start.
//
// The same bits come from each of them (docs/architecture.md, "The same bits"), so this choice
// changes speed only.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace quire {

enum class InstructionSet { kPortable, kAvx2, kAvx512 };

std::string_view InstructionSetName(InstructionSet set);  // "portable", "avx2", "avx512"

// What this machine can run, from the plainest to the fastest; kPortable is always there.
// kAvx2 needs AVX2, FMA, F16C and BMI2; kAvx512 needs F, VL, DQ, BW, CD and VNNI besides.
std::vector<InstructionSet> AvailableInstructionSets();

// The fastest available set, or the one that `forced` names (QUIRE_CPU). kInvalidArgument for an
// unknown name, kUnsupported if this machine lacks it.
StatusOr<InstructionSet> ChooseInstructionSet(std::optional<std::string_view> forced);

}  // namespace quire
