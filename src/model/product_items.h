// ProductItems: shares one or more matrix products out over the items of a stage.
//
// An item is some neighbouring panels of the products, one after the other. The first items are
// large, each a long stream of weights; the last ones are small, so that all workers end together.
// What an item computes does not depend on how many there are.
//
// Threads: constant; Multiply may run on several threads at once, each item on one.
#pragma once

#include <cstdint>
#include <span>

#include "linear/kernels.h"
#include "model/weights.h"

namespace quire {

// out [rows, matrix rows] = or += the layer's product.
struct Product {
  const LinearLayer* layer;
  float* out;
  bool accumulate = false;
};

class ProductItems {
 public:
  struct Range {
    int begin, end;
  };

  ProductItems(const LinearKernels& kernels, int num_threads);

  uint32_t Count(std::span<const Product> products) const;

  // Computes one item of rows [m0, m1) of `x`.
  void Multiply(const Activations& x, int m0, int m1, std::span<const Product> products,
                uint32_t item) const;

  // The same shares for a stage of its own: `total` units of `unit_bytes` of weights.
  uint32_t CountOf(int total, int64_t unit_bytes) const;
  Range RangeOf(int total, int64_t unit_bytes, uint32_t item) const;

  // Panels [begin, end) of one product, of rows [m0, m1).
  void MultiplyPanels(const Activations& x, int m0, int m1, const Product& product, int begin,
                      int end) const;

 private:
  // Calls visit(begin, end) for each share in order until it returns false.
  template <class Visit>
  void ForEachShare(int total, int64_t unit_bytes, Visit&& visit) const;

  const LinearKernels& kernels_;
  int share_shift_ = 0;  // an item takes what is left / 2^share_shift_
};

}  // namespace quire
