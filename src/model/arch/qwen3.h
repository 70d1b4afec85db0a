// The architecture `qwen3`: Qwen 3, dense.
#pragma once

#include "model/architecture.h"

namespace quire {

extern const Architecture kQwen3;

}  // namespace quire
