#include "model/gguf_header.h"

#include <algorithm>
#include <numeric>

#include "base/errors.h"
#include "base/message_text.h"

namespace quire {
namespace {

// The element of `list` with this name, through the indices sorted by name.
template <class T>
const T* FindByName(const std::vector<T>& list, const std::vector<uint32_t>& by_name,
                    std::string_view name) {
  const auto place =
      std::lower_bound(by_name.begin(), by_name.end(), name,
                       [&](uint32_t index, std::string_view n) { return list[index].name < n; });
  if (place == by_name.end() || list[*place].name != name) return nullptr;
  return &list[*place];
}

Status Missing(std::string_view name) { return InvalidFile("key {} is missing", Printable(name)); }

}  // namespace

std::string DimsText(const GgufTensor& tensor) {
  return fmt::format("[{}]",
                     fmt::join(tensor.dims.begin(), tensor.dims.begin() + tensor.num_dims, ", "));
}

const GgufKey* GgufHeader::FindKey(std::string_view name) const {
  return FindByName(keys_, keys_by_name_, name);
}

const GgufTensor* GgufHeader::FindTensor(std::string_view name) const {
  return FindByName(tensors_, tensors_by_name_, name);
}

StatusOr<GgufHeader> GgufHeader::Join(std::span<const GgufHeader* const> parts) {
  GgufHeader joined = *parts.front();
  for (uint32_t part = 1; part < parts.size(); ++part) {
    joined.file_bytes_ += parts[part]->file_bytes_;
    for (GgufTensor tensor : parts[part]->tensors_) {
      tensor.part = part;
      joined.tensors_.push_back(tensor);
    }
    if (joined.tensors_.size() > kMaxGgufTensors)
      return InvalidFile("the parts hold more than {} tensors", GroupDigits(kMaxGgufTensors));
  }
  std::vector<GgufTensor>& tensors = joined.tensors_;
  std::vector<uint32_t>& by_name = joined.tensors_by_name_;
  by_name.resize(tensors.size());
  std::iota(by_name.begin(), by_name.end(), 0u);
  std::stable_sort(by_name.begin(), by_name.end(),
                   [&](uint32_t a, uint32_t b) { return tensors[a].name < tensors[b].name; });
  for (size_t i = 1; i < by_name.size(); ++i) {
    const GgufTensor &a = tensors[by_name[i - 1]], &b = tensors[by_name[i]];
    if (a.name == b.name)
      return InvalidFile("tensor {} is in part {} and in part {}", Printable(a.name), a.part + 1,
                         b.part + 1);
  }
  return joined;
}

StatusOr<int64_t> GgufHeader::GetInteger(std::string_view name, int64_t low, int64_t high) const {
  const GgufKey* key = FindKey(name);
  if (key == nullptr) return Missing(name);
  return ReadInteger(*key, low, high);
}

StatusOr<double> GgufHeader::GetNumber(std::string_view name) const {
  const GgufKey* key = FindKey(name);
  if (key == nullptr) return Missing(name);
  return ReadNumber(*key);
}

StatusOr<bool> GgufHeader::GetBool(std::string_view name) const {
  const GgufKey* key = FindKey(name);
  if (key == nullptr) return Missing(name);
  return ReadBool(*key);
}

StatusOr<std::string_view> GgufHeader::GetString(std::string_view name) const {
  const GgufKey* key = FindKey(name);
  if (key == nullptr) return Missing(name);
  return ReadString(*key);
}

StatusOr<std::vector<int32_t>> GgufHeader::GetIntegers(std::string_view name, int32_t low,
                                                       int32_t high) const {
  const GgufKey* key = FindKey(name);
  if (key == nullptr) return Missing(name);
  return ReadIntegers(*key, low, high);
}

StatusOr<std::vector<float>> GgufHeader::GetFloats(std::string_view name) const {
  const GgufKey* key = FindKey(name);
  if (key == nullptr) return Missing(name);
  return ReadFloats(*key);
}

StatusOr<std::vector<std::string_view>> GgufHeader::GetStrings(std::string_view name) const {
  const GgufKey* key = FindKey(name);
  if (key == nullptr) return Missing(name);
  return ReadStrings(*key);
}

StatusOr<int64_t> GgufHeader::GetIntegerOr(std::string_view name, int64_t fallback, int64_t low,
                                           int64_t high) const {
  const GgufKey* key = FindKey(name);
  if (key == nullptr) return fallback;
  return ReadInteger(*key, low, high);
}

StatusOr<double> GgufHeader::GetNumberOr(std::string_view name, double fallback) const {
  const GgufKey* key = FindKey(name);
  if (key == nullptr) return fallback;
  return ReadNumber(*key);
}

StatusOr<bool> GgufHeader::GetBoolOr(std::string_view name, bool fallback) const {
  const GgufKey* key = FindKey(name);
  if (key == nullptr) return fallback;
  return ReadBool(*key);
}

StatusOr<std::string_view> GgufHeader::GetStringOr(std::string_view name,
                                                   std::string_view fallback) const {
  const GgufKey* key = FindKey(name);
  if (key == nullptr) return fallback;
  return ReadString(*key);
}

}  // namespace quire
