#include "model/architecture.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/check.h"
#include "base/errors.h"
#include "base/message_text.h"
#include "model/arch/gemma3.h"
#include "model/arch/llama.h"
#include "model/arch/qwen2.h"
#include "model/arch/qwen3.h"

namespace quire {
namespace {

constexpr std::array<const Architecture*, 4> kArchitectures = {&kLlama, &kQwen2, &kQwen3, &kGemma3};

constexpr std::string_view kLayerPrefix = "blk.N.";
constexpr std::string_view kWeight = ".weight";
constexpr std::string_view kBias = ".bias";
constexpr std::string_view kScale = ".scale";
constexpr std::string_view kInputScale = ".input_scale";  // known, never used

bool IsPerLayer(std::string_view rule_name) { return rule_name.starts_with(kLayerPrefix); }

bool IsVectorType(WeightType type) {
  return type == WeightType::kF32 || type == WeightType::kF16 || type == WeightType::kBf16;
}

// Tensors of experts: stacked ("ffn_up_exps"), shared ("ffn_up_shexp"), the router
// ("ffn_gate_inp"), or the obsolete one tensor for each ("ffn_up.3.weight").
bool IsExpertTensor(std::string_view name) {
  if (name.find("_exps.") != name.npos || name.find("_shexp.") != name.npos ||
      name.find("ffn_gate_inp.") != name.npos)
    return true;
  for (const std::string_view part : {".ffn_gate.", ".ffn_up.", ".ffn_down."}) {
    const size_t place = name.find(part);
    if (place != name.npos && place + part.size() < name.size()) {
      const char next = name[place + part.size()];
      if (next >= '0' && next <= '9') return true;
    }
  }
  return false;
}

// The layer of "blk.17.x", or -1.
int LayerOf(std::string_view name) {
  if (!name.starts_with("blk.")) return -1;
  int layer = -1;
  for (const char c : name.substr(4)) {
    if (c == '.') return layer;
    if (c < '0' || c > '9' || layer > 100'000) return -1;
    layer = std::max(layer, 0) * 10 + (c - '0');
  }
  return -1;
}

class TensorChecker {
 public:
  TensorChecker(const GgufHeader& header, const ModelShape& shape, const Architecture& architecture)
      : header_(header), shape_(shape), architecture_(architecture) {}

  Status CheckRule(const TensorRule& rule, int layer) {
    if (!rule.unless.empty() &&
        header_.FindTensor(TensorName(rule.unless, layer, kWeight)) != nullptr)
      return CheckAbsent(rule, layer);
    const bool vector = rule.rows == Dim::kOne;
    const int64_t columns = DimValue(rule.columns, shape_);
    const int64_t rows = DimValue(rule.rows, shape_);
    QUIRE_RETURN_IF_ERROR(
        Check(TensorName(rule.name, layer, kWeight), rule.weight, columns, rows, vector));
    Presence bias = rule.bias;
    if (header_.FindTensor(TensorName(rule.name, layer, kWeight)) == nullptr)
      bias = std::min(bias, Presence::kOptional);
    QUIRE_RETURN_IF_ERROR(Check(TensorName(rule.name, layer, kBias), bias, vector ? columns : rows,
                                1, /*vector=*/true));
    if (rule.scale == ScaleForm::kNone) return OkStatus();
    used_.insert(TensorName(rule.name, layer, kInputScale));
    if (rule.scale == ScaleForm::kIgnored) {
      used_.insert(TensorName(rule.name, layer, kScale));
      return OkStatus();
    }
    return Check(TensorName(rule.name, layer, kScale), Presence::kOptional, 1, 1, /*vector=*/true);
  }

  // Names of the tensors that no checked rule names.
  StatusOr<std::vector<std::string_view>> Unknown() const {
    std::vector<std::string_view> unknown;
    for (const GgufTensor& tensor : header_.tensors()) {
      if (used_.contains(tensor.name)) continue;
      if (LayerOf(tensor.name) >= shape_.num_layers) continue;  // predicts further tokens
      if (IsExpertTensor(tensor.name))
        return Unsupported("tensor {}: mixtures of experts come in a later version",
                           Printable(tensor.name));
      unknown.push_back(tensor.name);
    }
    return unknown;
  }

 private:
  Status CheckAbsent(const TensorRule& rule, int layer) const {
    for (const std::string_view suffix : {kWeight, kBias}) {
      const std::string name = TensorName(rule.name, layer, suffix);
      if (header_.FindTensor(name) != nullptr)
        return InvalidFile("the file has both tensor {} and {}: one of the two forms is needed",
                           name, TensorName(rule.unless, layer, kWeight));
    }
    return OkStatus();
  }

  Status Check(std::string name, Presence presence, int64_t columns, int64_t rows, bool vector) {
    if (presence == Presence::kAbsent) return OkStatus();
    const GgufTensor* tensor = header_.FindTensor(name);
    if (tensor == nullptr) {
      if (presence == Presence::kOptional) return OkStatus();
      return InvalidFile("tensor {} is missing: architecture {} needs it", name,
                         architecture_.name);
    }
    const std::array<int64_t, 4> wanted = {columns, rows, 1, 1};
    if (tensor->dims != wanted)
      return InvalidFile(
          "tensor {} has dims {}: need {}", name, DimsText(*tensor),
          vector ? fmt::format("[{}]", columns) : fmt::format("[{}, {}]", columns, rows));
    if (vector && !IsVectorType(tensor->type))
      return Unsupported("tensor {}: type {}, need F32, F16 or BF16", name,
                         WeightTypeName(tensor->type));
    used_.insert(std::move(name));
    return OkStatus();
  }

  const GgufHeader& header_;
  const ModelShape& shape_;
  const Architecture& architecture_;
  std::set<std::string, std::less<>> used_;
};

}  // namespace

int64_t DimValue(Dim dim, const ModelShape& shape) {
  switch (dim) {
    case Dim::kOne:
      return 1;
    case Dim::kEmbedding:
      return shape.embedding_length;
    case Dim::kVocabulary:
      return shape.vocab_size;
    case Dim::kQRows:
      return shape.q_rows();
    case Dim::kKRows:
      return shape.k_rows();
    case Dim::kVRows:
      return shape.v_rows();
    case Dim::kQkvRows:
      return int64_t{shape.q_rows()} + shape.k_rows() + shape.v_rows();
    case Dim::kAttentionColumns:
      return shape.attention_columns();
    case Dim::kFeedForward:
      return shape.feed_forward_length;
    case Dim::kHeadDimK:
      return shape.head_dim_k;
    case Dim::kHalfRope:
      return shape.rope().dimension_count / 2;
  }
  return 0;
}

std::span<const Architecture* const> AllArchitectures() { return kArchitectures; }

StatusOr<const Architecture*> FindArchitecture(std::string_view name) {
  std::string known;
  for (const Architecture* architecture : kArchitectures) {
    if (architecture->name == name) return architecture;
    known += ' ';
    known += architecture->name;
  }
  return Unsupported("architecture {} is not supported, this version runs:{}", Printable(name),
                     known);
}

StatusOr<const Architecture*> ReadArchitecture(const GgufHeader& header) {
  QUIRE_ASSIGN_OR_RETURN(const std::string_view type, header.GetStringOr("general.type", "model"));
  if (type != "model")
    return Unsupported("key general.type is {}: need a model, not a part of one", Printable(type));
  QUIRE_ASSIGN_OR_RETURN(const std::string_view name, header.GetString("general.architecture"));
  return FindArchitecture(name);
}

StatusOr<ModelShape> ReadShape(const GgufHeader& header) {
  QUIRE_ASSIGN_OR_RETURN(const Architecture* architecture, ReadArchitecture(header));
  QUIRE_ASSIGN_OR_RETURN(ModelShape shape, ReadCommonShape(header, architecture->name));
  const ArchitectureKeys keys(header, architecture->name);
  if (architecture->read_own_keys != nullptr)
    QUIRE_RETURN_IF_ERROR(architecture->read_own_keys(keys, shape));
  return shape;
}

StatusOr<std::vector<std::string_view>> CheckTensors(const GgufHeader& header,
                                                     const ModelShape& shape) {
  QUIRE_ASSIGN_OR_RETURN(const Architecture* architecture, FindArchitecture(shape.architecture));
  TensorChecker checker(header, shape, *architecture);
  for (const TensorRule& rule : architecture->tensors) {
    const int num_layers = IsPerLayer(rule.name) ? shape.num_layers : 1;
    for (int layer = 0; layer < num_layers; ++layer)
      QUIRE_RETURN_IF_ERROR(checker.CheckRule(rule, layer));
  }
  return checker.Unknown();
}

std::string TensorName(std::string_view rule_name, int layer, std::string_view suffix) {
  if (!IsPerLayer(rule_name)) return fmt::format("{}{}", rule_name, suffix);
  return fmt::format("blk.{}.{}{}", layer, rule_name.substr(kLayerPrefix.size()), suffix);
}

}  // namespace quire
