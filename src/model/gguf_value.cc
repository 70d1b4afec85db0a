#include "model/gguf_value.h"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "base/errors.h"
#include "base/message_text.h"

namespace quire {
namespace {

struct TypeEntry {
  std::string_view name;
  int bytes;
};
constexpr std::array<TypeEntry, kLastGgufType + 1> kTypes = {{{"u8", 1},
                                                              {"i8", 1},
                                                              {"u16", 2},
                                                              {"i16", 2},
                                                              {"u32", 4},
                                                              {"i32", 4},
                                                              {"f32", 4},
                                                              {"bool", 1},
                                                              {"string", 0},
                                                              {"array", 0},
                                                              {"u64", 8},
                                                              {"i64", 8},
                                                              {"f64", 8}}};

template <class T>
T Load(const std::byte* place) {  // GGUF is little-endian, as is every machine we run on
  T value;
  std::memcpy(&value, place, sizeof(T));
  return value;
}

// An integer of any of the types; a u64 beyond int64's range shows its maximum, which every
// caller's range excludes or may hold.
struct Integer {
  int64_t value;
  bool too_large;
};

std::optional<Integer> LoadInteger(GgufType type, const std::byte* place) {
  switch (type) {
    case GgufType::kU8:
      return Integer{Load<uint8_t>(place), false};
    case GgufType::kI8:
      return Integer{Load<int8_t>(place), false};
    case GgufType::kU16:
      return Integer{Load<uint16_t>(place), false};
    case GgufType::kI16:
      return Integer{Load<int16_t>(place), false};
    case GgufType::kU32:
      return Integer{Load<uint32_t>(place), false};
    case GgufType::kI32:
      return Integer{Load<int32_t>(place), false};
    case GgufType::kU64: {
      const uint64_t value = Load<uint64_t>(place);
      return Integer{static_cast<int64_t>(value),
                     value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())};
    }
    case GgufType::kI64:
      return Integer{Load<int64_t>(place), false};
    default:
      return std::nullopt;
  }
}

std::optional<double> LoadFloat(GgufType type, const std::byte* place) {
  if (type == GgufType::kF32) return Load<float>(place);
  if (type == GgufType::kF64) return Load<double>(place);
  return std::nullopt;
}

std::string_view AsText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Status WrongType(const GgufKey& key, std::string_view wanted) {
  return InvalidFile("key {}: found {}, need {}", Printable(key.name), GgufTypeText(key), wanted);
}

std::string ScalarText(GgufType type, const std::byte* place) {
  if (type == GgufType::kBool) return Load<uint8_t>(place) != 0 ? "true" : "false";
  if (type == GgufType::kU64) return fmt::format("{}", Load<uint64_t>(place));
  if (const auto integer = LoadInteger(type, place)) return fmt::format("{}", integer->value);
  if (type == GgufType::kF32) return fmt::format("{}", Load<float>(place));
  if (type == GgufType::kF64) return fmt::format("{}", Load<double>(place));
  return "?";
}

// The next string of an array of strings; moves `place` behind it.
std::string_view NextString(const std::byte*& place) {
  const uint64_t length = Load<uint64_t>(place);
  const std::string_view text(reinterpret_cast<const char*>(place) + 8, length);
  place += 8 + length;
  return text;
}

}  // namespace

std::string_view GgufTypeName(GgufType type) { return kTypes[static_cast<uint32_t>(type)].name; }
int GgufTypeBytes(GgufType type) { return kTypes[static_cast<uint32_t>(type)].bytes; }

std::string GgufTypeText(const GgufKey& key) {
  if (!key.is_array()) return std::string(GgufTypeName(key.type));
  return fmt::format("array of {} {}", key.count, GgufTypeName(key.element_type));
}

std::string GgufValueText(const GgufKey& key, size_t max_bytes) {
  if (key.type == GgufType::kString) return Printable(AsText(key.bytes), max_bytes);
  if (!key.is_array()) return ScalarText(key.type, key.bytes.data());
  std::string text = "[";
  const std::byte* place = key.bytes.data();
  for (uint64_t i = 0; i < key.count; ++i) {
    if (i > 0) text += ", ";
    if (text.size() >= max_bytes) {
      text += "...";
      break;
    }
    if (key.element_type == GgufType::kString) {
      text += '"' + Printable(NextString(place), max_bytes) + '"';
    } else {
      text += ScalarText(key.element_type, place);
      place += GgufTypeBytes(key.element_type);
    }
  }
  return text + "]";
}

StatusOr<int64_t> ReadInteger(const GgufKey& key, int64_t low, int64_t high) {
  const auto integer = LoadInteger(key.type, key.bytes.data());
  if (!integer) return WrongType(key, "an integer");
  if (integer->too_large || integer->value < low || integer->value > high)
    return InvalidFile("key {} is {}: need {} to {}", Printable(key.name),
                       ScalarText(key.type, key.bytes.data()), low, high);
  return integer->value;
}

StatusOr<double> ReadNumber(const GgufKey& key) {
  const auto number = LoadFloat(key.type, key.bytes.data());
  if (!number) return WrongType(key, "f32 or f64");
  if (!std::isfinite(*number))
    return InvalidFile("key {} is {}: need a finite number", Printable(key.name), *number);
  return *number;
}

StatusOr<bool> ReadBool(const GgufKey& key) {
  if (key.type != GgufType::kBool) return WrongType(key, "bool");
  return Load<uint8_t>(key.bytes.data()) != 0;
}

StatusOr<std::string_view> ReadString(const GgufKey& key) {
  if (key.type != GgufType::kString) return WrongType(key, "string");
  return AsText(key.bytes);
}

StatusOr<std::vector<int32_t>> ReadIntegers(const GgufKey& key, int32_t low, int32_t high) {
  if (!key.is_array() || (key.count > 0 && !LoadInteger(key.element_type, key.bytes.data())))
    return WrongType(key, "an array of integers");
  std::vector<int32_t> list(key.count);
  const int width = GgufTypeBytes(key.element_type);
  for (uint64_t i = 0; i < key.count; ++i) {
    const std::byte* place = key.bytes.data() + i * width;
    const Integer integer = *LoadInteger(key.element_type, place);
    if (integer.too_large || integer.value < low || integer.value > high)
      return InvalidFile("key {}: element {} is {}: need {} to {}", Printable(key.name), i,
                         ScalarText(key.element_type, place), low, high);
    list[i] = static_cast<int32_t>(integer.value);
  }
  return list;
}

StatusOr<std::vector<float>> ReadFloats(const GgufKey& key) {
  if (!key.is_array() || (key.element_type != GgufType::kF32 && key.element_type != GgufType::kF64))
    return WrongType(key, "an array of f32 or f64");
  std::vector<float> list(key.count);
  if (key.element_type == GgufType::kF32) {
    if (key.count > 0) std::memcpy(list.data(), key.bytes.data(), key.bytes.size());
  } else {
    for (uint64_t i = 0; i < key.count; ++i)
      list[i] = static_cast<float>(Load<double>(key.bytes.data() + 8 * i));
  }
  return list;
}

StatusOr<std::vector<bool>> ReadBools(const GgufKey& key) {
  if (!key.is_array() || key.element_type != GgufType::kBool)
    return WrongType(key, "an array of bool");
  std::vector<bool> list(key.count);
  for (uint64_t i = 0; i < key.count; ++i) list[i] = Load<uint8_t>(key.bytes.data() + i) != 0;
  return list;
}

StatusOr<std::vector<std::string_view>> ReadStrings(const GgufKey& key) {
  if (!key.is_array() || key.element_type != GgufType::kString)
    return WrongType(key, "an array of string");
  std::vector<std::string_view> list(key.count);
  const std::byte* place = key.bytes.data();
  for (std::string_view& text : list) text = NextString(place);
  return list;
}

}  // namespace quire
