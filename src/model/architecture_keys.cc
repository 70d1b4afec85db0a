#include "model/architecture_keys.h"

#include <vector>

#include "base/errors.h"

namespace quire {

StatusOr<int> ArchitectureKeys::Required(std::string_view key, int low, int high) const {
  QUIRE_ASSIGN_OR_RETURN(const int64_t value, header_.GetInteger(Name(key), low, high));
  return static_cast<int>(value);
}

StatusOr<int> ArchitectureKeys::Optional(std::string_view key, int fallback, int high) const {
  QUIRE_ASSIGN_OR_RETURN(const int64_t value, header_.GetIntegerOr(Name(key), 0, 0, high));
  return value == 0 ? fallback : static_cast<int>(value);
}

StatusOr<double> ArchitectureKeys::OptionalNumber(std::string_view key, double fallback,
                                                  double high) const {
  QUIRE_ASSIGN_OR_RETURN(const double value, header_.GetNumberOr(Name(key), 0));
  if (value == 0) return fallback;
  if (value < 0 || value > high)
    return InvalidFile("key {} is {}: need a number above 0 and at most {}", Name(key), value,
                       high);
  return value;
}

StatusOr<double> ArchitectureKeys::FrequencyBase(std::string_view key, double fallback) const {
  QUIRE_ASSIGN_OR_RETURN(const double base, OptionalNumber(key, fallback, 1e15));
  if (base <= 1) return InvalidFile("key {} is {}: need a number above 1", Name(key), base);
  return base;
}

StatusOr<int> ArchitectureKeys::PerLayer(std::string_view key, int high,
                                         int num_array_layers) const {
  const std::string name = Name(key);
  const GgufKey* found = header_.FindKey(name);
  if (found == nullptr || !found->is_array()) return Required(key, 1, high);
  QUIRE_ASSIGN_OR_RETURN(const std::vector<int32_t> list, ReadIntegers(*found, 0, high));
  if (list.size() != static_cast<size_t>(num_array_layers))
    return InvalidFile("key {} has {} values for {} layers", name, list.size(), num_array_layers);
  for (size_t layer = 1; layer < list.size(); ++layer)
    if (list[layer] != list[0])
      return Unsupported(
          "key {} is {} in layer 0 and {} in layer {}: layers that differ are not supported yet",
          name, list[0], list[layer], layer);
  if (list[0] == 0) return InvalidFile("key {} is 0 in every layer: need 1 to {}", name, high);
  return list[0];
}

StatusOr<std::vector<bool>> ArchitectureKeys::WindowedLayers(int default_period,
                                                             int num_layers) const {
  constexpr std::string_view kPattern = "attention.sliding_window_pattern";
  const GgufKey* found = Find(kPattern);
  std::vector<bool> windowed(static_cast<size_t>(num_layers));
  if (found != nullptr && found->is_array()) {
    QUIRE_ASSIGN_OR_RETURN(const std::vector<bool> list, ReadBools(*found));
    QUIRE_ASSIGN_OR_RETURN(const int num_array_layers, Required("block_count", 1, INT32_MAX));
    if (list.size() != static_cast<size_t>(num_array_layers))
      return InvalidFile("key {} has {} values for {} layers", Name(kPattern), list.size(),
                         num_array_layers);
    windowed.assign(list.begin(), list.begin() + num_layers);
    return windowed;
  }
  QUIRE_ASSIGN_OR_RETURN(const int period, Optional(kPattern, default_period, INT32_MAX));
  for (int layer = 0; layer < num_layers; ++layer)
    windowed[static_cast<size_t>(layer)] = layer % period < period - 1;
  return windowed;
}

Status ArchitectureKeys::Refuse(std::string_view key, std::string_view why) const {
  const GgufKey* found = Find(key);
  if (found == nullptr) return OkStatus();
  double value = 0;
  if (found->type == GgufType::kF32 || found->type == GgufType::kF64) {
    QUIRE_ASSIGN_OR_RETURN(value, ReadNumber(*found));
  } else {
    QUIRE_ASSIGN_OR_RETURN(const int64_t integer, ReadInteger(*found, 0, UINT32_MAX));
    value = static_cast<double>(integer);
  }
  if (value == 0) return OkStatus();
  return Unsupported("key {} is {}: {}", Name(key), value, why);
}

}  // namespace quire
