// GgufFile: an open model: one GGUF file, or the parts that one was split into, as a single header
// with all tensors.
//
// The parts of a split model are NAME-00001-of-00003.gguf and so on, each a whole GGUF file. Any of
// them may be given; the others are looked for beside it. The model's keys are those of the first.
//
// Owner: of its parts (gguf_part.h), whose header memory it shares.
// Threads: Read may be called from several threads at once; the rest is read only after Open.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "model/gguf_header.h"
#include "model/gguf_part.h"

namespace quire {

class GgufFile {
 public:
  // Opens the model of which `path` is the file or a part, and parses its headers. Errors name the
  // path, and are those of GgufPart::Open; kNotFound if another part is missing, kInvalidFile if
  // the parts are not those of one model.
  static StatusOr<GgufFile> Open(const std::string& path);

  const std::string& path() const { return path_; }  // as given
  const GgufHeader& header() const { return header_; }
  uint64_t size_bytes() const { return header_.file_bytes(); }  // of all parts
  size_t num_parts() const { return parts_.size(); }

  // Keeps the bytes alive that the header's keys point into.
  std::shared_ptr<const void> header_memory() const { return parts_.front().header_memory(); }

  // Reads into.size() bytes of the tensor from byte `offset` of it. kInvalidFile if the file has
  // become too short, kInternal if the system cannot read.
  // Requires: a tensor of this header; offset + into.size() <= tensor.size_bytes.
  Status Read(const GgufTensor& tensor, uint64_t offset, std::span<std::byte> into) const;

  // kInvalidFile if the length or time of change of a part is no longer that of Open: call it when
  // all weights are read, and a file that was rewritten meanwhile is not taken for a model.
  Status CheckUnchanged() const;

 private:
  GgufFile() = default;
  Status OpenParts(GgufPart given);

  std::string path_;
  std::vector<GgufPart> parts_;  // never empty; in their order
  GgufHeader header_;            // of all parts
};

}  // namespace quire
