#include "plan/shape_text.h"

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/errors.h"
#include "base/message_text.h"
#include "base/units.h"

namespace quire {
namespace {

struct ShapeKey {
  std::string_view name;
  uint64_t high;  // its value is 1 to high
  std::optional<uint64_t> value = {};
};

constexpr uint64_t kMaxParams = 1'000'000'000'000'000;

class ShapeKeys {
 public:
  Status Read(std::string_view text) {
    if (text.empty()) return Refuse("is empty");
    for (size_t begin = 0; begin <= text.size();) {
      const size_t end = std::min(text.find(',', begin), text.size());
      QUIRE_RETURN_IF_ERROR(ReadItem(text.substr(begin, end - begin)));
      begin = end + 1;
    }
    return OkStatus();
  }

  bool Has(std::string_view name) const { return Find(name).value.has_value(); }
  uint64_t Get(std::string_view name, uint64_t fallback = 0) const {
    return Find(name).value.value_or(fallback);
  }
  uint32_t GetSmall(std::string_view name, uint32_t fallback = 0) const {
    return static_cast<uint32_t>(Get(name, fallback));  // its range is that of 32 bits
  }
  StatusOr<uint32_t> Need(std::string_view name, std::string_view why) const {
    if (Has(name)) return GetSmall(name);
    return Refuse(fmt::format("says nothing of {}{}", name, why));
  }

  static Status Refuse(std::string_view what) {
    return InvalidArgument(
        "the shape {}: write for example layers=80,kv_heads=8,head_dim=128; there are layers, "
        "kv_heads, head_dim, v_head_dim, q_heads, window, window_layers, kv_lora_rank, rope_dim, "
        "params, active_params and context",
        what);
  }

 private:
  const ShapeKey& Find(std::string_view name) const {
    for (const ShapeKey& key : keys_)
      if (key.name == name) return key;
    QUIRE_CHECK(false);
    return keys_.front();
  }

  Status ReadItem(std::string_view item) {
    const size_t equals = item.find('=');
    if (equals == item.npos)
      return Refuse(fmt::format("has '{}', which is no key=value", Printable(item)));
    const std::string_view name = item.substr(0, equals), text = item.substr(equals + 1);
    for (ShapeKey& key : keys_) {
      if (key.name != name) continue;
      if (key.value.has_value()) return Refuse(fmt::format("says {} twice", name));
      const StatusOr<uint64_t> value = ParseCount(text);
      if (!value.ok() || *value == 0 || *value > key.high)
        return InvalidArgument("the shape's {} is '{}': need a whole number from 1 to {}", name,
                               Printable(text), GroupDigits(key.high));
      key.value = *value;
      return OkStatus();
    }
    return Refuse(fmt::format("has the key '{}', which is not known", Printable(name)));
  }

  std::array<ShapeKey, 12> keys_ = {{{"layers", kMaxPlanLayers},
                                     {"kv_heads", kMaxPlanDim},
                                     {"head_dim", kMaxPlanDim},
                                     {"v_head_dim", kMaxPlanDim},
                                     {"q_heads", kMaxPlanDim},
                                     {"window", kMaxPlanContext},
                                     {"window_layers", kMaxPlanLayers},
                                     {"kv_lora_rank", kMaxPlanDim},
                                     {"rope_dim", kMaxPlanDim},
                                     {"params", kMaxParams},
                                     {"active_params", kMaxParams},
                                     {"context", kMaxPlanContext}}};
};

// One layer, and what it would be as multi-head attention.
Status ReadLayer(const ShapeKeys& keys, KvModel& model, KvLayers& layer) {
  const bool is_latent = keys.Has("kv_lora_rank") || keys.Has("rope_dim");
  if (is_latent) {
    constexpr std::string_view kWhy = ", and latent attention needs both kv_lora_rank and rope_dim";
    layer.num_kv_heads = 1;
    QUIRE_ASSIGN_OR_RETURN(layer.head_dim_k, keys.Need("kv_lora_rank", kWhy));
    QUIRE_ASSIGN_OR_RETURN(layer.latent_rope_dim, keys.Need("rope_dim", kWhy));
    if (keys.Has("kv_heads"))
      return ShapeKeys::Refuse("has kv_heads, but latent attention has one latent for all heads");
    model.num_q_heads = keys.GetSmall("q_heads");
    model.q_head_dim = keys.GetSmall("head_dim");
    model.v_head_dim = keys.GetSmall("v_head_dim");
    return OkStatus();
  }
  QUIRE_ASSIGN_OR_RETURN(layer.num_kv_heads, keys.Need("kv_heads", ""));
  QUIRE_ASSIGN_OR_RETURN(layer.head_dim_k, keys.Need("head_dim", ""));
  layer.head_dim_v = keys.GetSmall("v_head_dim", layer.head_dim_k);
  model.num_q_heads = keys.GetSmall("q_heads", layer.num_kv_heads);
  model.q_head_dim = layer.head_dim_k;
  model.v_head_dim = layer.head_dim_v;
  if (model.num_q_heads % layer.num_kv_heads != 0)
    return InvalidArgument("the shape has q_heads={} and kv_heads={}: need a multiple of kv_heads",
                           model.num_q_heads, layer.num_kv_heads);
  return OkStatus();
}

StatusOr<std::vector<uint32_t>> ReadWindows(const ShapeKeys& keys, uint32_t num_layers) {
  std::vector<uint32_t> windows(num_layers, 0);
  if (keys.Has("window_layers") && !keys.Has("window"))
    return ShapeKeys::Refuse("has window_layers, but no window");
  const uint32_t windowed = keys.GetSmall("window_layers", keys.Has("window") ? num_layers : 0);
  if (windowed > num_layers)
    return InvalidArgument("the shape has window_layers={} of layers={}: need at most as many",
                           windowed, num_layers);
  for (uint32_t i = 0; i < windowed; ++i) windows[i] = keys.GetSmall("window");
  return windows;
}

}  // namespace

StatusOr<KvModel> ReadShapeText(std::string_view text) {
  ShapeKeys keys;
  QUIRE_RETURN_IF_ERROR(keys.Read(text));
  KvModel model;
  model.name = text;
  model.architecture = "shape";
  model.source = "--shape";
  KvLayers layer;
  QUIRE_ASSIGN_OR_RETURN(model.num_layers, keys.Need("layers", ""));
  QUIRE_RETURN_IF_ERROR(ReadLayer(keys, model, layer));
  QUIRE_ASSIGN_OR_RETURN(const std::vector<uint32_t> windows, ReadWindows(keys, model.num_layers));
  model.groups = GroupLayers(layer, windows);
  model.context_length = keys.GetSmall("context");
  if (keys.Has("params")) model.num_params = keys.Get("params");
  if (keys.Has("active_params")) model.num_active_params = keys.Get("active_params");
  if (keys.Has("active_params") && keys.Get("active_params") > keys.Get("params"))
    return ShapeKeys::Refuse("has more active_params than params");
  QUIRE_RETURN_IF_ERROR(CheckKvModel(model));
  return model;
}

}  // namespace quire
