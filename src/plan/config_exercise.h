// ExerciseConfig: reads bytes as a config.json and holds the answer to what every answer must
// keep, for the fuzzer and the mutation test.
//
// Only tests and fuzzers link this.
#pragma once

#include <string_view>

namespace quire {

// Stops the program if an answer breaks a promise: an error without words, a model whose groups do
// not add up, sizes that overflow. True if the bytes were a model.
bool ExerciseConfig(std::string_view text);

}  // namespace quire
