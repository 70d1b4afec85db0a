#include "model/product_items.h"

#include <algorithm>

namespace quire {
namespace {

// Weights of an item.
constexpr int64_t kItemWeightBytes = 48 << 10;

}  // namespace

int ProductItems::PanelsPerItem(const PackedMatrix& matrix) const {
  const int64_t by_bytes = std::max<int64_t>(1, kItemWeightBytes / matrix.panel_bytes());
  const int by_threads = std::max(1, matrix.num_panels() / (4 * num_threads_));
  return static_cast<int>(std::min<int64_t>(by_bytes, by_threads));
}

uint32_t ProductItems::CountOf(const PackedMatrix& matrix) const {
  const int per_item = PanelsPerItem(matrix);
  return static_cast<uint32_t>((matrix.num_panels() + per_item - 1) / per_item);
}

uint32_t ProductItems::Count(std::span<const Product> products) const {
  uint32_t count = 0;
  for (const Product& product : products) count += CountOf(product.layer->matrix);
  return count;
}

void ProductItems::Multiply(const Activations& x, int m0, int m1, std::span<const Product> products,
                            uint32_t item) const {
  size_t index = 0;
  for (uint32_t count; item >= (count = CountOf(products[index].layer->matrix)); ++index)
    item -= count;
  const PackedMatrix& matrix = products[index].layer->matrix;
  const int per_item = PanelsPerItem(matrix);
  const int begin = static_cast<int>(item) * per_item;
  MultiplyPanels(x, m0, m1, products[index], begin,
                 std::min(begin + per_item, matrix.num_panels()));
}

void ProductItems::MultiplyPanels(const Activations& x, int m0, int m1, const Product& product,
                                  int begin, int end) const {
  const LinearLayer& layer = *product.layer;
  kernels_.multiply(layer.matrix, x, m0, m1, begin, end, product.out, layer.matrix.num_rows(),
                    {.bias = layer.bias.empty() ? nullptr : layer.bias.data(),
                     .scale = layer.scale,
                     .scale_after_bias = layer.scale_after_bias,
                     .accumulate = product.accumulate});
}

}  // namespace quire
