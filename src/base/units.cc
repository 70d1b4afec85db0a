#include "base/units.h"

#include <charconv>
#include <cmath>
#include <optional>
#include <span>

#include "base/errors.h"

namespace quire {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

// The number and its unit's factor, multiplied; unset if the text is not of that form.
std::optional<double> ParseWithUnit(std::string_view text, std::span<const Unit> units) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || !std::isfinite(value) || value < 0) return std::nullopt;
  std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  for (const Unit& known : units)
    if (known.name == unit) return value * known.factor;
  return std::nullopt;
}

constexpr Unit kByteUnits[] = {{"B", 1},       {"KB", 1e3},     {"MB", 1e6},     {"GB", 1e9},
                               {"TB", 1e12},   {"K", 0x1p10},   {"M", 0x1p20},   {"G", 0x1p30},
                               {"T", 0x1p40},  {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30},
                               {"TiB", 0x1p40}};
constexpr Unit kTimeUnits[] = {{"ms", 1}, {"s", 1e3}, {"m", 60e3}, {"h", 3600e3}};
constexpr Unit kCountUnits[] = {{"", 1},    {"k", 1e3}, {"K", 1e3}, {"M", 1e6},
                                {"G", 1e9}, {"B", 1e9}, {"T", 1e12}};

}  // namespace

StatusOr<uint64_t> ParseBytes(std::string_view text) {
  const auto bytes = ParseWithUnit(text, kByteUnits);
  if (bytes.has_value() && *bytes >= 1 && *bytes < 0x1p62) return static_cast<uint64_t>(*bytes);
  return InvalidArgument("'{}' is no size: write a number and its unit, for example 512MiB or 4GiB",
                         text);
}

StatusOr<std::chrono::milliseconds> ParseDuration(std::string_view text) {
  const auto ms = text == "0" ? std::optional<double>(0) : ParseWithUnit(text, kTimeUnits);
  if (ms.has_value() && *ms <= 1e12) return std::chrono::milliseconds(std::llround(*ms));
  return InvalidArgument("'{}' is no time: write a number and its unit, for example 500ms or 10s",
                         text);
}

StatusOr<uint64_t> ParseCount(std::string_view text) {
  const auto count = ParseWithUnit(text, kCountUnits);
  // 2.3k is not exactly 2300 in binary.
  if (count.has_value() && *count < 0x1p53 && std::abs(*count - std::round(*count)) < 1e-6)
    return static_cast<uint64_t>(std::llround(*count));
  return InvalidArgument("'{}' is no whole number: write for example 4096 or 25k", text);
}

}  // namespace quire
