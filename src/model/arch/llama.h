// The Llama family: Llama 1 to 3, Mistral 7B, SmolLM2, TinyLlama, ...
#pragma once

#include "model/architecture.h"

namespace quire {

extern const Architecture kLlama;

}  // namespace quire
