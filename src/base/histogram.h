// Histogram: how often values fell between fixed bounds, since the start. A plain value without
// memory of its own.
//
// Threading: plain values.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace quire {

// kBounds: a constexpr array of doubles, ascending.
template <const auto& kBounds>
struct Histogram {
  // counts[i]: values <= kBounds[i] and above the bound before; the last: those above all bounds.
  std::array<uint64_t, kBounds.size() + 1> counts{};
  double sum = 0;

  static constexpr const auto& bounds() { return kBounds; }
  void Add(double value) {
    const auto place = std::lower_bound(kBounds.begin(), kBounds.end(), value);
    ++counts[static_cast<size_t>(place - kBounds.begin())];
    sum += value;
  }
  uint64_t num_values() const {
    uint64_t total = 0;
    for (const uint64_t count : counts) total += count;
    return total;
  }
};

}  // namespace quire
