// Models that are split over several GGUF files: the names of the parts, and the checks that they
// belong together. Pure functions; gguf_file.h opens the parts.
//
// Source: gguf-split of llama.cpp.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "model/gguf_header.h"

namespace quire {

// What makes a file a part: keys split.no (from 0) and split.count.
struct SplitPlace {
  int number = 0;
  int count = 1;  // 1: not split

  bool operator==(const SplitPlace&) const = default;
};

// Of a header without the keys: number 0, count 1. Errors: wrong types, a number that is not below
// the count, one key without the other.
StatusOr<SplitPlace> ReadSplitPlace(const GgufHeader& header);

// Of "FOLDER/NAME-00002-of-00003.gguf": number 1, count 3. Nothing if the name has no such end.
std::optional<SplitPlace> SplitPlaceOfName(std::string_view path);

// The path of part `number`, from that of any other. Requires: SplitPlaceOfName(path).
std::string PartPath(std::string_view path, int number);

// One header of all parts, given in their order: the keys of the first, the tensors of all, each
// with its part's index. Checks that each part says so of itself, that split.tensors.count is the
// number of tensors in all, and that no name is in two parts.
StatusOr<GgufHeader> MergeParts(std::span<const GgufHeader* const> parts);

}  // namespace quire
