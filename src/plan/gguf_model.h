// GgufModel: what a planner needs of a GGUF file, from its header alone; no weights are read.
//
// For architectures that this engine runs, the shape and the layer groups are those of the engine
// (ReadShape, LayerGroups). For others that are known, the keys are read by rules of their own and
// the model is marked as one that does not run. Weights count every tensor of the file, so all
// experts.
//
// Threads: pure functions.
#pragma once

#include <string_view>
#include <vector>

#include "base/status.h"
#include "model/gguf_header.h"
#include "plan/kv_model.h"

namespace quire {

// kUnsupported (exit code 2) if general.architecture is not known, or if a key says that the model
// holds a state that is not planned (recurrent layers): the message names it, and nothing is
// guessed. kInvalidFile for keys that are missing or out of range.
StatusOr<KvModel> ReadGgufModel(const GgufHeader& header);

// Names that general.architecture may have, in the order of the alphabet.
std::vector<std::string_view> PlannedGgufArchitectures();

}  // namespace quire
