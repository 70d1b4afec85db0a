// WeightType: how the elements of a weight matrix are stored in a model file.
//
// This file knows names and sizes only. What the bytes of a block mean stands beside the kernels
// that read them. The values of the enum are the type ids of GGUF files.
//
// Threads: plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace quire {

enum class WeightType : uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ2K = 10,
  kQ3K = 11,
  kQ4K = 12,
  kQ5K = 13,
  kQ6K = 14,
  kIq4Nl = 20,
  kIq4Xs = 23,
  kBf16 = 30,
  kMxfp4 = 39,
};

// Every value of the enum, in the order of their ids.
std::span<const WeightType> AllWeightTypes();

// The type with this id, or nothing if the id is none of the enum's.
std::optional<WeightType> WeightTypeFromId(uint32_t id);

// "Q4_1" for every type id that GGUF has given out, also those outside the enum ("IQ2_XXS");
// "type 99" for the rest. For error messages.
std::string WeightTypeIdName(uint32_t id);

// "F32", "Q4_1", ...: the name that GGUF tools use.
std::string_view WeightTypeName(WeightType type);

// A row is a sequence of blocks; a block holds this many elements in this many bytes.
int BlockElements(WeightType type);
int BlockBytes(WeightType type);

// Bytes of a row of `num_elements`. Requires: a multiple of BlockElements(type), not negative, and
// at most 2^60 (so that nothing overflows).
int64_t RowBytes(WeightType type, int64_t num_elements);

}  // namespace quire
