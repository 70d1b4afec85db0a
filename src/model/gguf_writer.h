// GgufWriter: makes GGUF bytes for tests, good ones and broken ones. No program writes GGUF with
// it.
//
// Keys and tensors keep the order in which they were first set. Set replaces; Append adds even if
// the name is there already. Everything that a reader must check can be set wrong on purpose.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "linear/weight_type.h"
#include "model/gguf_value.h"

namespace quire {

using Bytes = std::vector<std::byte>;

class GgufWriter {
 public:
  // A value of the type that T stands for: u8 .. u64, i8 .. i64, float, double, bool.
  template <class T>
  GgufWriter& Set(std::string_view name, T value) {
    return SetRaw(name, static_cast<uint32_t>(TypeOf<T>()), Encode(value));
  }
  GgufWriter& SetString(std::string_view name, std::string_view text);
  template <class T>
  GgufWriter& SetArray(std::string_view name, const std::vector<T>& values) {
    Bytes elements;
    for (const T value : values) Append(elements, Encode(value));
    return SetRawArray(name, static_cast<uint32_t>(TypeOf<T>()), values.size(), elements);
  }
  GgufWriter& SetStrings(std::string_view name, const std::vector<std::string>& texts);

  // Any type id and any bytes.
  GgufWriter& SetRaw(std::string_view name, uint32_t type_id, const Bytes& value);
  GgufWriter& SetRawArray(std::string_view name, uint32_t element_type_id, uint64_t count,
                          const Bytes& elements);
  GgufWriter& AppendRaw(std::string_view name, uint32_t type_id, const Bytes& value);
  GgufWriter& Remove(std::string_view name);

  struct Tensor {
    std::string name;
    std::vector<uint64_t> dims;  // fastest first
    uint32_t type_id = 0;
    Bytes data;                      // empty: zeros, as many as dims and type ask for
    std::optional<uint64_t> offset;  // not set: behind the tensor before, aligned
    std::optional<uint32_t> num_dims;
  };
  GgufWriter& SetTensor(std::string_view name, std::vector<uint64_t> dims,
                        WeightType type = WeightType::kF32, Bytes data = {});
  GgufWriter& AppendTensor(Tensor tensor);
  GgufWriter& RemoveTensor(std::string_view name);
  Tensor* FindTensor(std::string_view name);  // nullptr if there is none

  // The same model as `count` files: the keys in the first, the tensors spread over all, in order,
  // and the keys split.no, split.count and split.tensors.count in each.
  std::vector<GgufWriter> Split(uint16_t count) const;

  uint32_t version = 3;
  uint64_t alignment = 32;  // of the data; set the key general.alignment as well
  std::optional<uint64_t> claimed_keys;
  std::optional<uint64_t> claimed_tensors;

  Bytes Header() const;  // up to the end of the tensor list
  Bytes File() const;    // with the data; the last tensor is not padded

  template <class T>
  static Bytes Encode(T value) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&value);
    return Bytes(bytes, bytes + sizeof(T));
  }
  static Bytes EncodeString(std::string_view text);
  static void Append(Bytes& bytes, const Bytes& more);

 private:
  struct Key {
    std::string name;
    uint32_t type_id;
    Bytes value;
  };

  template <class T>
  static constexpr GgufType TypeOf() {
    if constexpr (std::is_same_v<T, bool>) return GgufType::kBool;
    if constexpr (std::is_same_v<T, float>) return GgufType::kF32;
    if constexpr (std::is_same_v<T, double>) return GgufType::kF64;
    if constexpr (std::is_same_v<T, uint8_t>) return GgufType::kU8;
    if constexpr (std::is_same_v<T, int8_t>) return GgufType::kI8;
    if constexpr (std::is_same_v<T, uint16_t>) return GgufType::kU16;
    if constexpr (std::is_same_v<T, int16_t>) return GgufType::kI16;
    if constexpr (std::is_same_v<T, uint32_t>) return GgufType::kU32;
    if constexpr (std::is_same_v<T, int32_t>) return GgufType::kI32;
    if constexpr (std::is_same_v<T, uint64_t>) return GgufType::kU64;
    if constexpr (std::is_same_v<T, int64_t>) return GgufType::kI64;
  }

  // Offset of each tensor from the start of the data, and the length of the data.
  std::vector<uint64_t> Offsets() const;

  std::vector<Key> keys_;
  std::vector<Tensor> tensors_;
};

// A whole model with zeros for weights: 2 layers, D 16, 4 query heads and 2 KV heads of 4, feed
// forward 24, 12 tokens of SentencePiece, all weights F32. A few kilobytes; change what a test is
// about. gemma3 has a window of 8 in layer 0.
// Requires: one of kTinyArchitectures.
GgufWriter TinyOf(std::string_view architecture);
inline constexpr std::string_view kTinyArchitectures[] = {"llama", "qwen2", "qwen3", "gemma3"};
GgufWriter TinyLlama();  // TinyOf("llama")

}  // namespace quire
