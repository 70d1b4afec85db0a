// ExerciseGguf: everything that this program does with the bytes of a header, for the mutation test
// and the fuzzer. Test code only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace quire {

// How far the bytes came: each step needs the one before.
enum class GgufProgress { kRefused, kUnfinished, kParsed, kHasShape, kHasTensors };

// Parses the bytes as the start of a file of `file_bytes`, then looks at every key and tensor,
// reads the shape, the vocabulary and the tensor rules.
GgufProgress ExerciseGguf(std::span<const std::byte> bytes, uint64_t file_bytes);

// The same of a model in parts: each magic number in the bytes begins one. kParsed stands for parts
// that do not fit together.
GgufProgress ExerciseGgufParts(std::span<const std::byte> bytes, uint64_t file_bytes);

}  // namespace quire
