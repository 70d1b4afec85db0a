// The small integers that name things across layers.
#pragma once

#include <cstdint>

namespace quire {

using TokenId = int32_t;  // an entry of the vocabulary; negative values are never valid

}  // namespace quire
