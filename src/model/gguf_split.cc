#include "model/gguf_split.h"

#include <vector>

#include "base/errors.h"
#include "base/message_text.h"

namespace quire {
namespace {

constexpr int64_t kMaxParts = 65'535;
constexpr std::string_view kNumberKey = "split.no";
constexpr std::string_view kCountKey = "split.count";
constexpr std::string_view kTensorsKey = "split.tensors.count";

constexpr size_t kDigits = 5;
constexpr std::string_view kOf = "-of-", kSuffix = ".gguf";
constexpr size_t kEndLength = 1 + kDigits + kOf.size() + kDigits + kSuffix.size();

// Five digits.
std::optional<int> ReadDigits(std::string_view text) {
  int number = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    number = number * 10 + (c - '0');
  }
  return number;
}

Status CheckTensorCount(const GgufHeader& part, size_t number, size_t num_parts,
                        size_t num_tensors) {
  if (number > 0 && part.FindKey(kTensorsKey) == nullptr) return OkStatus();
  QUIRE_ASSIGN_OR_RETURN(const int64_t claimed, part.GetInteger(kTensorsKey, 0, INT32_MAX));
  if (static_cast<size_t>(claimed) == num_tensors) return OkStatus();
  return InvalidFile("key {} of part {} is {}, but the {} parts hold {} tensors", kTensorsKey,
                     number + 1, claimed, num_parts, num_tensors);
}

}  // namespace

StatusOr<SplitPlace> ReadSplitPlace(const GgufHeader& header) {
  QUIRE_ASSIGN_OR_RETURN(const int64_t count, header.GetIntegerOr(kCountKey, 0, 0, kMaxParts));
  if (count <= 1) return SplitPlace{};
  QUIRE_ASSIGN_OR_RETURN(const int64_t number, header.GetInteger(kNumberKey, 0, count - 1));
  return SplitPlace{static_cast<int>(number), static_cast<int>(count)};
}

std::optional<SplitPlace> SplitPlaceOfName(std::string_view path) {
  if (path.size() < kEndLength) return std::nullopt;
  const std::string_view end = path.substr(path.size() - kEndLength);
  const auto number = ReadDigits(end.substr(1, kDigits));
  const auto count = ReadDigits(end.substr(1 + kDigits + kOf.size(), kDigits));
  if (end[0] != '-' || end.substr(1 + kDigits, kOf.size()) != kOf || !end.ends_with(kSuffix) ||
      !number || !count || *number < 1 || *number > *count)
    return std::nullopt;
  return SplitPlace{*number - 1, *count};
}

std::string PartPath(std::string_view path, int number) {
  const size_t digits = path.size() - kEndLength + 1;
  return fmt::format("{}{:05}{}", path.substr(0, digits), number + 1,
                     path.substr(digits + kDigits));
}

StatusOr<GgufHeader> MergeParts(std::span<const GgufHeader* const> parts) {
  const auto count = static_cast<int>(parts.size());
  size_t num_tensors = 0;
  for (int i = 0; i < count; ++i) {
    const GgufHeader& part = *parts[static_cast<size_t>(i)];
    QUIRE_ASSIGN_OR_RETURN(const SplitPlace place, ReadSplitPlace(part));
    if (place != SplitPlace{i, count})
      return InvalidFile("part {} of {} says of itself that it is part {} of {}", i + 1, count,
                         place.number + 1, place.count);
    num_tensors += part.tensors().size();
  }
  if (count > 1)
    for (size_t i = 0; i < parts.size(); ++i)
      QUIRE_RETURN_IF_ERROR(CheckTensorCount(*parts[i], i, parts.size(), num_tensors));
  return GgufHeader::Join(parts);
}

}  // namespace quire
