// FlagAliases: flags of vLLM and llama.cpp that `quire serve` takes as its own.
//
// Where another project's flag means the same it becomes ours, silently and without a line in
// --help. Where it means something else, or what it asks for is not here, it is an error that names
// ours: nothing that a user asked for is dropped in silence.
//
// Threading: pure functions.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace quire {

// `arguments`, those behind the command's name, with our flags in place of others'.
// kInvalidArgument: one that means something else.
StatusOr<std::vector<std::string>> TranslateFlags(const std::vector<std::string>& arguments);

}  // namespace quire
