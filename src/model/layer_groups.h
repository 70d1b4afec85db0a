// LayerGroups: the layers of a model whose KV lives alike, and the forms of their pages.
//
// Layers that see the same keys form a group: those without a window (`full`), and those of each
// window. A page belongs to one group and holds page_size tokens of all its layers. The full group
// comes first, then windows from the smallest on; a group without layers does not exist.
//
// Not here: the pages (cache/).
//
// Threads: a constant after it is made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "codec/kv_forms.h"
#include "model/shape.h"

namespace quire {

struct LayerGroup {
  uint32_t window = 0;      // keys that a position sees, itself included; 0: all
  std::vector<int> layers;  // ascending
};

class LayerGroups {
 public:
  explicit LayerGroups(const ModelShape& shape);

  size_t size() const { return groups_.size(); }
  const LayerGroup& operator[](size_t group) const { return groups_[group]; }
  std::span<const LayerGroup> groups() const { return groups_; }

  size_t group_of_layer(int layer) const { return places_[static_cast<size_t>(layer)].group; }
  // The layer's index within its group, which is its index within a page.
  uint32_t index_in_group(int layer) const { return places_[static_cast<size_t>(layer)].index; }

 private:
  struct Place {
    size_t group;
    uint32_t index;
  };
  std::vector<LayerGroup> groups_;
  std::vector<Place> places_;  // of each layer
};

// The forms of the pages of each group. Errors: as MakeKvForms.
StatusOr<std::vector<KvForms>> MakeGroupForms(const ModelShape& shape, const LayerGroups& groups,
                                              uint32_t page_size, const KvFormOptions& options);

}  // namespace quire
