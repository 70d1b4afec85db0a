// ProductItems: shares one or more matrix products out over the items of a stage.
//
// An item is some panels of one of the products: long enough a stream of weights for the
// prefetcher, short enough to share out. What an item computes does not depend on how many there
// are.
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
  ProductItems(const LinearKernels& kernels, int num_threads)
      : kernels_(kernels), num_threads_(num_threads) {}

  uint32_t Count(std::span<const Product> products) const;

  // Computes one item of rows [m0, m1) of `x`.
  void Multiply(const Activations& x, int m0, int m1, std::span<const Product> products,
                uint32_t item) const;

  // Panels that an item takes.
  int PanelsPerItem(const PackedMatrix& matrix) const;

  // Panels [begin, end) of one product, of rows [m0, m1).
  void MultiplyPanels(const Activations& x, int m0, int m1, const Product& product, int begin,
                      int end) const;

 private:
  uint32_t CountOf(const PackedMatrix& matrix) const;

  const LinearKernels& kernels_;
  int num_threads_;
};

}  // namespace quire
