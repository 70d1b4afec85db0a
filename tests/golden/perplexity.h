// Perplexity of a text, counted as goldens/greedy.json of the shared data says.
#pragma once

#include <cstddef>
#include <string>

#include "engine/model_runner.h"
#include "text/tokenizer.h"

namespace quire {

// The text at `path` in `num_chunks` chunks of `context` ids, BOS in place of each first one if the
// model adds BOS; the second half of a chunk is scored, but for its first id. A text that is too
// short, or a computation that fails, ends the test program.
double Perplexity(ModelRunner& engine, const Tokenizer& tokenizer, const std::string& path,
                  size_t context, size_t num_chunks);

}  // namespace quire
