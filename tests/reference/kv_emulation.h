// KvEmulation: what a KV codec does to the keys and values of the double reference, without pages
// or layouts: a vector for each token.
//
// K and V that are to be sealed are rounded to halves first, as open pages hold them.
#pragma once

#include <cstdint>
#include <vector>

#include "codec/kv_forms.h"

namespace quire {

class KvEmulation {
 public:
  // options: codecs f32 (kept as doubles), f16 and kivi4.
  KvEmulation(const KvFormOptions& options, uint32_t page_size)
      : options_(options), page_size_(page_size) {}

  // Vectors [num_kv_heads * head_dim] of each token so far, as the codec gives them back.
  struct Side {
    std::vector<std::vector<double>> open;
    std::vector<std::vector<double>> sealed;  // of the tokens of full pages
  };
  void AppendK(std::vector<double> k, Side& keys) const;
  void AppendV(std::vector<double> v, uint32_t head_dim, Side& values) const;

  // Token `key` as a query at `position` reads it.
  const std::vector<double>& Read(const Side& side, size_t position, size_t key, bool has_window,
                                  KvCodec codec) const;

  const KvFormOptions& options() const { return options_; }

 private:
  KvFormOptions options_;
  uint32_t page_size_;
};

}  // namespace quire
