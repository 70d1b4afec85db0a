#include "model/gguf_file.h"

#include <utility>

#include "base/errors.h"
#include "model/gguf_split.h"

namespace quire {

StatusOr<GgufFile> GgufFile::Open(const std::string& path) {
  GgufFile file;
  file.path_ = path;
  QUIRE_ASSIGN_OR_RETURN(GgufPart given, GgufPart::Open(path));
  QUIRE_RETURN_IF_ERROR(file.OpenParts(std::move(given)));
  std::vector<const GgufHeader*> headers;
  for (const GgufPart& part : file.parts_) headers.push_back(&part.header());
  StatusOr<GgufHeader> merged = MergeParts(headers);
  if (!merged.ok()) return merged.status().WithContext(path);
  file.header_ = std::move(merged).value();
  return file;
}

// The parts beside `given`, which is one of them.
Status GgufFile::OpenParts(GgufPart given) {
  const StatusOr<SplitPlace> place = ReadSplitPlace(given.header());
  if (!place.ok()) return place.status().WithContext(path_);
  if (place->count == 1) {
    parts_.push_back(std::move(given));
    return OkStatus();
  }
  const std::optional<SplitPlace> named = SplitPlaceOfName(path_);
  if (!named || *named != *place)
    return InvalidFile(
        "{}: part {} of a model that is split into {} files: its name must end with "
        "-{:05}-of-{:05}.gguf, by which the other parts are found beside it",
        path_, place->number + 1, place->count, place->number + 1, place->count);
  for (int i = 0; i < place->count; ++i) {
    if (i == place->number) continue;
    const std::string path = PartPath(path_, i);
    StatusOr<GgufPart> part = GgufPart::Open(path);
    if (part.status().code() == StatusCode::kNotFound)
      return NotFound("{}: no such file: the model that {} is a part of needs all {} parts", path,
                      path_, place->count);
    if (!part.ok()) return part.status();
    parts_.push_back(std::move(part).value());
  }
  parts_.insert(parts_.begin() + place->number, std::move(given));
  return OkStatus();
}

Status GgufFile::Read(const GgufTensor& tensor, uint64_t offset, std::span<std::byte> into) const {
  return parts_[tensor.part].Read(tensor, offset, into);
}

Status GgufFile::CheckUnchanged() const {
  for (const GgufPart& part : parts_) QUIRE_RETURN_IF_ERROR(part.CheckUnchanged());
  return OkStatus();
}

}  // namespace quire
