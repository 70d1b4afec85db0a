// GgufKey: one key of a GGUF header with its value, as a typed view into the header's bytes, and
// the readers that turn a value into a number, a string or a list.
//
// A reader accepts any integer type for an integer and f32 or f64 for a number; everything else is
// an error that names the key, the type found and the type wanted. Never aborts, never throws.
// The lookup by name is gguf_header.h; what the keys mean is shape.h and vocabulary_reader.h.
//
// Threads: plain values, read only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace quire {

// The value types of the format, with their ids.
enum class GgufType : uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};
constexpr uint32_t kLastGgufType = 12;

std::string_view GgufTypeName(GgufType type);

// Bytes of a value of this type; 0 for strings and arrays, which have no fixed size.
int GgufTypeBytes(GgufType type);

struct GgufKey {
  std::string_view name;
  GgufType type;
  GgufType element_type;  // of an array; else equal to type
  uint64_t count;         // elements of an array; else 1
  // Numbers and bools: as in the file. A string: its text. An array of strings: each as u64 length
  // and text, already checked to lie in the span.
  std::span<const std::byte> bytes;

  bool is_array() const { return type == GgufType::kArray; }
};

// "u32", "array of 512 string".
std::string GgufTypeText(const GgufKey& key);

// The value, cut to about `max_bytes` characters, for people: "llama", "[0.5, 1, ...]".
std::string GgufValueText(const GgufKey& key, size_t max_bytes = 80);

// Scalars. Errors: another type; a value outside [low, high]; NaN or infinity.
StatusOr<int64_t> ReadInteger(const GgufKey& key, int64_t low, int64_t high);
StatusOr<double> ReadNumber(const GgufKey& key);
StatusOr<bool> ReadBool(const GgufKey& key);
StatusOr<std::string_view> ReadString(const GgufKey& key);

// Arrays. The views and lists are as long as the array. Errors as above; the numbers of a list of
// floats may be NaN or infinite.
StatusOr<std::vector<int32_t>> ReadIntegers(const GgufKey& key, int32_t low, int32_t high);
StatusOr<std::vector<float>> ReadFloats(const GgufKey& key);
StatusOr<std::vector<bool>> ReadBools(const GgufKey& key);
StatusOr<std::vector<std::string_view>> ReadStrings(const GgufKey& key);

}  // namespace quire
