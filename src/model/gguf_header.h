// GgufHeader: what a GGUF file says about itself: its keys and the places of its tensors.
//
// ParseGguf is a pure function of bytes, and everything it takes from them is checked before it
// is used: counts, lengths, types, alignment, shapes, places. A header that parses is safe to
// walk; whether it describes a model that we can run is asked later (shape.h, architecture.h).
// Reading a file is gguf_file.h.
//
// Owner: the header holds views into the bytes given to ParseGguf; they must outlive it.
// Threads: read only after parsing.
// Cost: linear in the bytes; n log n in the number of keys and tensors (names are sorted, so that
// no choice of names can make a lookup slow). Source: the GGUF specification of ggml (versions 2
// and 3).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "linear/weight_type.h"
#include "model/gguf_value.h"

namespace quire {

struct GgufTensor {
  std::string_view name;
  WeightType type;
  int num_dims;                 // 1 to 4, as in the file
  std::array<int64_t, 4> dims;  // [columns, rows, ...]: fastest first; 1 beyond num_dims
  uint64_t file_offset;         // from the start of its file
  uint64_t size_bytes;
  uint32_t part;  // of a split model, the index of its file; else 0

  int64_t columns() const { return dims[0]; }
  int64_t rows() const { return dims[1] * dims[2] * dims[3]; }
};

// "[64, 512]".
std::string DimsText(const GgufTensor& tensor);

class GgufHeader {
 public:
  uint32_t version() const { return version_; }
  uint64_t alignment() const { return alignment_; }
  uint64_t header_bytes() const { return header_bytes_; }  // up to the end of the tensor list
  uint64_t file_bytes() const { return file_bytes_; }

  // In the order of the file.
  std::span<const GgufKey> keys() const { return keys_; }
  std::span<const GgufTensor> tensors() const { return tensors_; }

  // nullptr if there is none of that name.
  const GgufKey* FindKey(std::string_view name) const;
  const GgufTensor* FindTensor(std::string_view name) const;

  // A key that must be there: its absence is an error that names it.
  StatusOr<int64_t> GetInteger(std::string_view name, int64_t low, int64_t high) const;
  StatusOr<double> GetNumber(std::string_view name) const;
  StatusOr<bool> GetBool(std::string_view name) const;
  StatusOr<std::string_view> GetString(std::string_view name) const;
  StatusOr<std::vector<int32_t>> GetIntegers(std::string_view name, int32_t low,
                                             int32_t high) const;
  StatusOr<std::vector<float>> GetFloats(std::string_view name) const;
  StatusOr<std::vector<std::string_view>> GetStrings(std::string_view name) const;

  // A key that may be absent: then `fallback`. Wrong types and values are errors all the same.
  StatusOr<int64_t> GetIntegerOr(std::string_view name, int64_t fallback, int64_t low,
                                 int64_t high) const;
  StatusOr<double> GetNumberOr(std::string_view name, double fallback) const;
  StatusOr<bool> GetBoolOr(std::string_view name, bool fallback) const;
  StatusOr<std::string_view> GetStringOr(std::string_view name, std::string_view fallback) const;

  // One header of the parts of a split model, in their order, once MergeParts (gguf_split.h) has
  // looked at their keys. It has the version, alignment and keys of the first part, the tensors and
  // bytes of all. kInvalidFile if a tensor is in two parts, or there are too many.
  static StatusOr<GgufHeader> Join(std::span<const GgufHeader* const> parts);

 private:
  friend class GgufParser;

  uint32_t version_ = 0;
  uint64_t alignment_ = 0;
  uint64_t header_bytes_ = 0;
  uint64_t file_bytes_ = 0;
  std::vector<GgufKey> keys_;
  std::vector<GgufTensor> tensors_;
  std::vector<uint32_t> keys_by_name_;     // indices, sorted by name
  std::vector<uint32_t> tensors_by_name_;  // indices, sorted by name
};

// No real header comes near these (the largest known have some 16 MiB); they bound what a hostile
// one can make us allocate.
constexpr uint64_t kMaxGgufHeaderBytes = uint64_t{256} << 20;
constexpr uint64_t kMaxGgufKeys = 65'536;
constexpr uint64_t kMaxGgufTensors = 262'144;
constexpr uint64_t kMaxGgufAlignment = uint64_t{1} << 20;

// Parses the header of a file of `file_bytes` bytes of which `bytes` are the first.
// Nothing (nullopt): no error so far, but the header goes on beyond `bytes`; call again with more.
// Allocates in proportion to the header bytes seen, never to a count that they claim.
// Errors: kInvalidFile or kUnsupported; the message names the key or tensor, not the file.
// Requires: bytes.size() <= file_bytes.
StatusOr<std::optional<GgufHeader>> ParseGguf(std::span<const std::byte> bytes,
                                              uint64_t file_bytes);

}  // namespace quire
