// Weight blocks of GGUF files as doubles, element by element from the formulas of the format.
//
// Written apart from linear/ on purpose: it is the judge of what that makes of the same bytes.
// Slow and plain. Every type of WeightType.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "linear/weight_type.h"

namespace quire {

// `num_elements` values from the front of `bytes`. kInvalidFile if there are not enough bytes.
StatusOr<std::vector<double>> Dequantise(WeightType type, std::span<const std::byte> bytes,
                                         int64_t num_elements);

}  // namespace quire
