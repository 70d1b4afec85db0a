#include "plan/kv_model.h"

#include <map>

#include "base/errors.h"
#include "base/message_text.h"

namespace quire {

std::vector<KvLayers> GroupLayers(const KvLayers& layer, std::span<const uint32_t> windows) {
  std::map<uint32_t, uint32_t> num_layers;  // by window
  for (const uint32_t window : windows) ++num_layers[window];
  std::vector<KvLayers> groups;
  for (const auto& [window, count] : num_layers) {
    groups.push_back(layer);
    groups.back().num_layers = count;
    groups.back().window = window;
  }
  return groups;
}

Status CheckKvModel(const KvModel& model) {
  for (const KvLayers& layers : model.groups) {
    const uint64_t values =
        uint64_t{layers.num_kv_heads} * (uint64_t{layers.head_dim_k} + layers.head_dim_v) +
        layers.latent_rope_dim;
    if (values > kMaxPlanValues)
      return Unsupported(
          "{} KV heads of {} + {} values are {} values of a token in one layer: need at most {}",
          layers.num_kv_heads, layers.head_dim_k, layers.head_dim_v, GroupDigits(values),
          GroupDigits(kMaxPlanValues));
    if (layers.num_layers > kMaxPlanLayers || layers.window > kMaxPlanContext)
      return Unsupported("{} layers with a window of {}: need at most {} and {}", layers.num_layers,
                         layers.window, kMaxPlanLayers, kMaxPlanContext);
  }
  return OkStatus();
}

}  // namespace quire
