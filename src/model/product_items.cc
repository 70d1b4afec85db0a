#include "model/product_items.h"

#include <algorithm>

namespace quire {
namespace {

// Weights of an item. At least so many: below, taking an item costs as much as it. At most: a
// worker that is held up must not hold up the others for long.
constexpr int64_t kLeastItemBytes = 8 << 10;
constexpr int64_t kMostItemBytes = 256 << 10;

int TotalPanels(std::span<const Product> products) {
  int total = 0;
  for (const Product& product : products) total += product.layer->matrix.num_panels();
  return total;
}

int64_t PanelBytes(std::span<const Product> products) {
  return products[0].layer->matrix.panel_bytes();
}

}  // namespace

ProductItems::ProductItems(const LinearKernels& kernels, int num_threads) : kernels_(kernels) {
  // With one worker there is nothing to balance.
  while (num_threads > 1 && 1 << share_shift_ < 2 * num_threads) ++share_shift_;
}

template <class Visit>
void ProductItems::ForEachShare(int total, int64_t unit_bytes, Visit&& visit) const {
  const auto least = static_cast<int>(std::max<int64_t>(1, kLeastItemBytes / unit_bytes));
  const auto most = static_cast<int>(std::max<int64_t>(least, kMostItemBytes / unit_bytes));
  for (int begin = 0; begin < total;) {
    const int left = total - begin;
    const int size = std::min(left, std::clamp(left >> share_shift_, least, most));
    if (!visit(begin, begin + size)) return;
    begin += size;
  }
}

uint32_t ProductItems::CountOf(int total, int64_t unit_bytes) const {
  uint32_t count = 0;
  ForEachShare(total, unit_bytes, [&](int, int) { return ++count, true; });
  return count;
}

ProductItems::Range ProductItems::RangeOf(int total, int64_t unit_bytes, uint32_t item) const {
  Range range{};
  ForEachShare(total, unit_bytes, [&](int begin, int end) {
    range = {begin, end};
    return item-- > 0;
  });
  return range;
}

uint32_t ProductItems::Count(std::span<const Product> products) const {
  return CountOf(TotalPanels(products), PanelBytes(products));
}

void ProductItems::Multiply(const Activations& x, int m0, int m1, std::span<const Product> products,
                            uint32_t item) const {
  auto [begin, end] = RangeOf(TotalPanels(products), PanelBytes(products), item);
  for (const Product& product : products) {
    const int panels = product.layer->matrix.num_panels();
    if (begin < panels && end > 0)
      MultiplyPanels(x, m0, m1, product, std::max(begin, 0), std::min(end, panels));
    begin -= panels;
    end -= panels;
  }
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
