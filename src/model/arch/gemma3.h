// The architecture `gemma3`: Gemma 3, text.
#pragma once

#include "model/architecture.h"

namespace quire {

extern const Architecture kGemma3;

}  // namespace quire
