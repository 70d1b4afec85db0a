// The vocabulary of a GGUF file, for tests of this layer only: it trusts the file. The reader that
// checks files is the model layer's.
#pragma once

#include <string>

#include "text/vocabulary.h"

namespace quire {

// Requires: a readable, sound GGUF file (v2 or v3) whose header is below 16 MiB.
Vocabulary VocabularyOfGguf(const std::string& path);

}  // namespace quire
