#include "model/layer_groups.h"

#include <algorithm>

#include "base/errors.h"

namespace quire {

LayerGroups::LayerGroups(const ModelShape& shape) {
  for (const LayerShape& layer : shape.layers) {
    const auto window = static_cast<uint32_t>(layer.window);
    if (std::none_of(groups_.begin(), groups_.end(),
                     [&](const LayerGroup& group) { return group.window == window; }))
      groups_.push_back({.window = window, .layers = {}});
  }
  std::sort(groups_.begin(), groups_.end(),
            [](const LayerGroup& a, const LayerGroup& b) { return a.window < b.window; });
  for (size_t i = 0; i < shape.layers.size(); ++i) {
    size_t group = 0;
    while (groups_[group].window != static_cast<uint32_t>(shape.layers[i].window)) ++group;
    std::vector<int>& layers = groups_[group].layers;
    places_.push_back({.group = group, .index = static_cast<uint32_t>(layers.size())});
    layers.push_back(static_cast<int>(i));
  }
}

StatusOr<std::vector<KvForms>> MakeGroupForms(const ModelShape& shape, const LayerGroups& groups,
                                              uint32_t page_size, const KvFormOptions& options) {
  std::vector<KvForms> all;
  for (const LayerGroup& group : groups.groups()) {
    const KvGeometry geometry = {.page_size = page_size,
                                 .num_layers = static_cast<uint32_t>(group.layers.size()),
                                 .num_kv_heads = static_cast<uint32_t>(shape.num_kv_heads),
                                 .head_dim_k = static_cast<uint32_t>(shape.head_dim_k),
                                 .head_dim_v = static_cast<uint32_t>(shape.head_dim_v)};
    QUIRE_ASSIGN_OR_RETURN(KvForms forms, MakeKvForms(geometry, options, group.window));
    all.push_back(forms);
  }
  return all;
}

}  // namespace quire
