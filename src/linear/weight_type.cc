#include "linear/weight_type.h"

#include <array>

#include "base/check.h"

namespace quire {
namespace {

struct Entry {
  WeightType type;
  std::string_view name;
  int block_elements;
  int block_bytes;
};

constexpr std::array kEntries = {
    Entry{WeightType::kF32, "F32", 1, 4},        Entry{WeightType::kF16, "F16", 1, 2},
    Entry{WeightType::kQ4_0, "Q4_0", 32, 18},    Entry{WeightType::kQ4_1, "Q4_1", 32, 20},
    Entry{WeightType::kQ5_0, "Q5_0", 32, 22},    Entry{WeightType::kQ5_1, "Q5_1", 32, 24},
    Entry{WeightType::kQ8_0, "Q8_0", 32, 34},    Entry{WeightType::kQ2K, "Q2_K", 256, 84},
    Entry{WeightType::kQ3K, "Q3_K", 256, 110},   Entry{WeightType::kQ4K, "Q4_K", 256, 144},
    Entry{WeightType::kQ5K, "Q5_K", 256, 176},   Entry{WeightType::kQ6K, "Q6_K", 256, 210},
    Entry{WeightType::kIq4Nl, "IQ4_NL", 32, 18}, Entry{WeightType::kIq4Xs, "IQ4_XS", 256, 136},
    Entry{WeightType::kBf16, "BF16", 1, 2},      Entry{WeightType::kMxfp4, "MXFP4", 32, 17},
};

constexpr auto kTypes = [] {
  std::array<WeightType, kEntries.size()> types{};
  for (size_t i = 0; i < types.size(); ++i) types[i] = kEntries[i].type;
  return types;
}();

// Ids of GGUF that are not in the enum, to name them in a refusal.
struct OtherId {
  uint32_t id;
  std::string_view name;
};
constexpr OtherId kOtherIds[] = {
    {9, "Q8_1"},   {15, "Q8_K"},  {16, "IQ2_XXS"}, {17, "IQ2_XS"}, {18, "IQ3_XXS"}, {19, "IQ1_S"},
    {21, "IQ3_S"}, {22, "IQ2_S"}, {24, "I8"},      {25, "I16"},    {26, "I32"},     {27, "I64"},
    {28, "F64"},   {29, "IQ1_M"}, {34, "TQ1_0"},   {35, "TQ2_0"},
};

const Entry& Find(WeightType type) {
  for (const Entry& entry : kEntries)
    if (entry.type == type) return entry;
  CheckFailed("a WeightType of the enum", __FILE__, __LINE__);
}

}  // namespace

std::span<const WeightType> AllWeightTypes() { return kTypes; }

std::optional<WeightType> WeightTypeFromId(uint32_t id) {
  for (const Entry& entry : kEntries)
    if (static_cast<uint32_t>(entry.type) == id) return entry.type;
  return std::nullopt;
}

std::string WeightTypeIdName(uint32_t id) {
  if (const auto type = WeightTypeFromId(id)) return std::string(WeightTypeName(*type));
  for (const OtherId& other : kOtherIds)
    if (other.id == id) return std::string(other.name);
  return "type " + std::to_string(id);
}

std::string_view WeightTypeName(WeightType type) { return Find(type).name; }
int BlockElements(WeightType type) { return Find(type).block_elements; }
int BlockBytes(WeightType type) { return Find(type).block_bytes; }

int64_t RowBytes(WeightType type, int64_t num_elements) {
  const Entry& entry = Find(type);
  QUIRE_CHECK(num_elements >= 0 && num_elements <= int64_t{1} << 60);
  QUIRE_CHECK(num_elements % entry.block_elements == 0);
  return num_elements / entry.block_elements * entry.block_bytes;
}

}  // namespace quire
