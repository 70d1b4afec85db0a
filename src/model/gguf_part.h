// GgufPart: one open GGUF file: its header in owned memory, and its tensors on request. A model is
// one of them, or several (gguf_file.h).
//
// Nothing is mapped: header and tensors are read with pread into memory that we own, so a file
// that is cut or overwritten while we run can give an error, never a SIGBUS and never a header
// that changes after it was checked.
//
// Owner: the part owns its descriptor and shares its header's memory (header_memory()).
// Threads: Read may be called from several threads at once; the rest is read only after Open.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/status.h"
#include "model/gguf_header.h"

namespace quire {

class GgufPart {
 public:
  // Opens `path` and parses its header. Errors name the path and: kNotFound (nothing there),
  // kInvalidArgument (a directory, no permission), kInvalidFile (empty, cut, breaks the format,
  // or another format, which is named), kUnsupported (an old version).
  static StatusOr<GgufPart> Open(const std::string& path);

  GgufPart(GgufPart&& other) noexcept;
  GgufPart& operator=(GgufPart&& other) noexcept;
  GgufPart(const GgufPart&) = delete;
  GgufPart& operator=(const GgufPart&) = delete;
  ~GgufPart();

  const std::string& path() const { return path_; }
  const GgufHeader& header() const { return header_; }
  uint64_t size_bytes() const { return header_.file_bytes(); }

  // Keeps the bytes alive that the header's views point into.
  std::shared_ptr<const void> header_memory() const { return header_memory_; }

  // Reads into.size() bytes of the tensor from byte `offset` of it. kInvalidFile if the file has
  // become too short, kInternal if the system cannot read.
  // Requires: a tensor of this header; offset + into.size() <= tensor.size_bytes.
  Status Read(const GgufTensor& tensor, uint64_t offset, std::span<std::byte> into) const;

  // kInvalidFile if the file's length or time of change is no longer that of Open: call it when
  // all weights are read, and a file that was rewritten meanwhile is not taken for a model.
  Status CheckUnchanged() const;

 private:
  GgufPart() = default;
  Status ReadHeader(uint64_t file_bytes);

  std::string path_;
  int descriptor_ = -1;
  int64_t changed_at_ns_ = 0;
  std::shared_ptr<const std::byte[]> header_memory_;
  GgufHeader header_;
};

}  // namespace quire
