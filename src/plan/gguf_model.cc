#include "plan/gguf_model.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include "base/errors.h"
#include "base/message_text.h"
#include "model/architecture.h"
#include "model/architecture_keys.h"
#include "model/layer_groups.h"
#include "model/layer_shape.h"
#include "plan/gguf_families.h"

namespace quire {
namespace {

constexpr int kMaxDim = static_cast<int>(kMaxPlanDim);
constexpr int kMaxContext = static_cast<int>(kMaxPlanContext);

uint32_t Unsigned(int value) { return static_cast<uint32_t>(value); }

// Parts of the names of keys that speak of memory beside K and V of each token and layer: recurrent
// states, indexers with keys of their own, layers that read the KV of others. Converters write them
// with 0 where a model has none.
constexpr std::string_view kStateKeys[] = {
    ".ssm.",     ".wkv.",     ".kda.head_dim",           ".shortconv.", ".attention.indexer.",
    "recurrent", "shared_kv", "full_attention_interval", "mamba",       "linear_attention",
};

bool IsNotZero(const GgufKey& key) {
  return key.type == GgufType::kString || std::any_of(key.bytes.begin(), key.bytes.end(),
                                                      [](std::byte b) { return b != std::byte{}; });
}

Status RefuseStateKeys(const GgufHeader& header, std::string_view architecture) {
  const std::string prefix = std::string(architecture) + ".";
  for (const GgufKey& key : header.keys()) {
    if (!key.name.starts_with(prefix) || !IsNotZero(key)) continue;
    for (const std::string_view part : kStateKeys)
      if (key.name.find(part) != key.name.npos)
        return Unsupported(
            "key {} is {}: this model keeps a state beside K and V of each layer, which is not "
            "planned; nothing is guessed",
            Printable(key.name), GgufValueText(key));
  }
  return OkStatus();
}

void SetFromEngine(const ModelShape& shape, KvModel& model) {
  model.context_length = Unsigned(shape.context_length);
  model.num_layers = Unsigned(shape.num_layers);
  model.num_q_heads = Unsigned(shape.num_q_heads);
  model.q_head_dim = Unsigned(shape.head_dim_k);
  model.v_head_dim = Unsigned(shape.head_dim_v);
  const LayerGroups groups(shape);
  for (const LayerGroup& group : groups.groups())
    model.groups.push_back({.num_layers = Unsigned(static_cast<int>(group.layers.size())),
                            .window = group.window,
                            .num_kv_heads = Unsigned(shape.num_kv_heads),
                            .head_dim_k = Unsigned(shape.head_dim_k),
                            .head_dim_v = Unsigned(shape.head_dim_v)});
}

// The keys of architectures that the engine does not run.
class FamilyReader {
 public:
  FamilyReader(const GgufHeader& header, const GgufFamily& family, KvModel& model)
      : family_(family), keys_(header, family.name), model_(model) {}

  Status Read() {
    QUIRE_RETURN_IF_ERROR(ReadLengths());
    KvLayers layer;
    QUIRE_RETURN_IF_ERROR(ReadHeads(layer));
    if (family_.is_latent) QUIRE_RETURN_IF_ERROR(ReadLatent(layer));
    QUIRE_ASSIGN_OR_RETURN(const std::vector<uint32_t> windows, ReadWindows());
    model_.groups = GroupLayers(layer, windows);
    if (model_.groups.front().window == 0 && model_.groups.size() == 1) return OkStatus();
    return CheckWindowedHeads();
  }

 private:
  Status ReadLengths() {
    QUIRE_ASSIGN_OR_RETURN(const int context, keys_.Required("context_length", 1, kMaxContext));
    QUIRE_ASSIGN_OR_RETURN(layers_, ReadLayerCounts(keys_));
    model_.context_length = Unsigned(context);
    model_.num_layers = Unsigned(layers_.num_layers());
    if (layers_.predicting > 0)
      model_.notes.push_back(fmt::format(
          "layers that predict further tokens: {}; their KV is not counted", layers_.predicting));
    return OkStatus();
  }

  Status ReadHeads(KvLayers& layer) {
    QUIRE_ASSIGN_OR_RETURN(const int width, keys_.Required("embedding_length", 1, 1 << 24));
    QUIRE_ASSIGN_OR_RETURN(const HeadShape heads, ReadHeadShape(keys_, width, layers_));
    model_.num_q_heads = Unsigned(heads.num_q_heads);
    model_.q_head_dim = Unsigned(heads.head_dim_k);
    model_.v_head_dim = Unsigned(heads.head_dim_v);
    layer.num_kv_heads = Unsigned(heads.num_kv_heads);
    layer.head_dim_k = Unsigned(heads.head_dim_k);
    layer.head_dim_v = Unsigned(heads.head_dim_v);
    return OkStatus();
  }

  // The cache holds the latent and one rotated key part, however the file has its tensors. Files of
  // the newer form give the lengths of the heads in keys of their own; in the older one
  // attention.key_length is that of a head.
  Status ReadLatent(KvLayers& layer) {
    QUIRE_ASSIGN_OR_RETURN(const int rank, keys_.Required("attention.kv_lora_rank", 1, kMaxDim));
    QUIRE_ASSIGN_OR_RETURN(const int rope, keys_.Required("rope.dimension_count", 1, kMaxDim));
    QUIRE_ASSIGN_OR_RETURN(const int k, keys_.Optional("attention.key_length_mla", 0, kMaxDim));
    QUIRE_ASSIGN_OR_RETURN(const int v, keys_.Optional("attention.value_length_mla", 0, kMaxDim));
    if (k != 0) model_.q_head_dim = Unsigned(k);
    if (v != 0) model_.v_head_dim = Unsigned(v);
    layer = {.num_kv_heads = 1, .head_dim_k = Unsigned(rank), .latent_rope_dim = Unsigned(rope)};
    return OkStatus();
  }

  StatusOr<std::vector<uint32_t>> ReadWindows() {
    std::vector<uint32_t> windows(model_.num_layers, 0);
    if (family_.window == GgufWindow::kNone) return windows;
    if (family_.needs_window)
      QUIRE_RETURN_IF_ERROR(keys_.Required("attention.sliding_window", 1, kMaxContext).status());
    QUIRE_ASSIGN_OR_RETURN(const int window,
                           keys_.Optional("attention.sliding_window",
                                          static_cast<int>(family_.default_window), kMaxContext));
    if (window == 0) return windows;
    if (family_.window == GgufWindow::kIgnored ||
        (family_.window == GgufWindow::kPatternOf64 && model_.num_layers != 64)) {
      if (keys_.Find("attention.sliding_window") != nullptr)
        model_.notes.push_back(fmt::format(
            "{} is {}, but not every file of this architecture means it: planned as full attention",
            keys_.Name("attention.sliding_window"), window));
      return windows;
    }
    std::vector<bool> windowed(windows.size(), true);
    if (family_.window != GgufWindow::kEveryLayer) {
      QUIRE_ASSIGN_OR_RETURN(
          windowed, keys_.WindowedLayers(family_.default_period, static_cast<int>(windows.size())));
    }
    for (size_t i = 0; i < windows.size(); ++i)
      if (windowed[i]) windows[i] = Unsigned(window);
    return windows;
  }

  // Newer files may give the windowed layers heads of another size.
  Status CheckWindowedHeads() {
    const std::pair<std::string_view, uint32_t> pairs[] = {
        {"attention.key_length_swa", model_.q_head_dim},
        {"attention.value_length_swa", model_.v_head_dim}};
    for (const auto& [key, length] : pairs) {
      QUIRE_ASSIGN_OR_RETURN(const int windowed,
                             keys_.Optional(key, static_cast<int>(length), kMaxDim));
      if (Unsigned(windowed) != length)
        return Unsupported("key {} is {}, but layers without a window have {}: not planned yet",
                           keys_.Name(key), windowed, length);
    }
    return OkStatus();
  }

  const GgufFamily& family_;
  const ArchitectureKeys keys_;
  KvModel& model_;
  LayerCounts layers_;
};

// Every tensor is loaded, so every expert counts; a token passes `used` of `count` experts.
Status ReadWeights(const GgufHeader& header, const ArchitectureKeys& keys, KvModel& model) {
  QUIRE_ASSIGN_OR_RETURN(const int count, keys.Optional("expert_count", 0, 1 << 20));
  QUIRE_ASSIGN_OR_RETURN(const int used, keys.Optional("expert_used_count", 0, 1 << 20));
  if (used > count)
    return InvalidFile("key {} is {}, but {} is {}", keys.Name("expert_used_count"), used,
                       keys.Name("expert_count"), count);
  uint64_t bytes = 0, params = 0, idle = 0;
  std::map<WeightType, uint64_t> bytes_of_type;
  for (const GgufTensor& tensor : header.tensors()) {
    const auto elements =
        static_cast<uint64_t>(tensor.columns()) * static_cast<uint64_t>(tensor.rows());
    bytes += tensor.size_bytes;  // the parser has checked that all lie in the file
    params += elements;
    bytes_of_type[tensor.type] += tensor.size_bytes;
    if (count > 0 && tensor.name.find("_exps.") != tensor.name.npos)
      idle += elements / Unsigned(count) * Unsigned(count - used);
  }
  if (header.tensors().empty()) return InvalidFile("the file has no tensors: is it a vocabulary?");
  model.weight_bytes = bytes;
  model.num_params = params;
  if (count == 0 || used > 0) model.num_active_params = params - idle;
  const auto most =
      std::max_element(bytes_of_type.begin(), bytes_of_type.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  model.weights_dtype = WeightTypeName(most->first);
  return OkStatus();
}

// Its files bear the name llama, and usual converters leave its window out.
bool LooksLikeMistral7B(const GgufHeader& header, const ArchitectureKeys& keys,
                        std::string_view title) {
  if (header.FindKey("llama.block_count") == nullptr) return false;
  if (title.find("istral") != title.npos) return true;
  const auto is = [&](std::string_view key, int value) {
    const StatusOr<int> found = keys.Optional(key, 0, INT32_MAX);
    return found.ok() && *found == value;
  };
  const GgufTensor* embedding = header.FindTensor("token_embd.weight");
  return is("block_count", 32) && is("feed_forward_length", 14336) &&
         is("attention.head_count_kv", 8) && embedding != nullptr && embedding->rows() < 33000;
}

}  // namespace

std::vector<std::string_view> PlannedGgufArchitectures() {
  std::vector<std::string_view> names;
  for (const GgufFamily& family : GgufFamilies()) names.push_back(family.name);
  return names;
}

StatusOr<KvModel> ReadGgufModel(const GgufHeader& header) {
  QUIRE_ASSIGN_OR_RETURN(const std::string_view type, header.GetStringOr("general.type", "model"));
  if (type != "model")
    return Unsupported("key general.type is {}: need a model, not a part of one", Printable(type));
  QUIRE_ASSIGN_OR_RETURN(const std::string_view name, header.GetString("general.architecture"));
  const GgufFamily* family = FindGgufFamily(name);
  if (family == nullptr)
    return Unsupported("architecture {} is not known, so nothing is planned for it: known are {}",
                       Printable(name), fmt::join(PlannedGgufArchitectures(), ", "));
  QUIRE_RETURN_IF_ERROR(RefuseStateKeys(header, name));

  KvModel model;
  model.architecture = name;
  model.source = "GGUF header";
  QUIRE_ASSIGN_OR_RETURN(const std::string_view title, header.GetStringOr("general.name", ""));
  model.name = Printable(title);
  const ArchitectureKeys keys(header, name);
  QUIRE_RETURN_IF_ERROR(ReadWeights(header, keys, model));

  const StatusOr<ModelShape> shape = ReadShape(header);
  Status engine = shape.status();
  if (shape.ok()) {
    engine = CheckTensors(header, *shape).status();
    if (!engine.ok() && engine.code() != StatusCode::kUnsupported) return engine;
    SetFromEngine(*shape, model);
  } else {
    if (engine.code() != StatusCode::kUnsupported) return engine;
    QUIRE_RETURN_IF_ERROR(FamilyReader(header, *family, model).Read());
  }
  model.runs = engine.ok();
  if (!engine.ok())
    model.notes.push_back("planned only, this version does not run it: " + engine.message());
  if (LooksLikeMistral7B(header, keys, title) && keys.Find("attention.sliding_window") == nullptr)
    model.notes.push_back(
        "the file says nothing of a window, so every layer keeps all tokens; Mistral 7B v0.1 has "
        "one of 4096 that its GGUF files leave out");
  QUIRE_RETURN_IF_ERROR(CheckKvModel(model));
  return model;
}

}  // namespace quire
