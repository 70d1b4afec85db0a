// The architecture `qwen2`: Qwen 1.5, 2 and 2.5, dense.
#pragma once

#include "model/architecture.h"

namespace quire {

extern const Architecture kQwen2;

}  // namespace quire
