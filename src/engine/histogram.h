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

inline constexpr std::array kStepSecondsBounds = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                                  0.075,  0.1,   0.15,   0.2,   0.3,  0.4,   0.5,
                                                  0.75,   1.0,   2.5,    5.0,   10.0};
inline constexpr std::array kStepTokensBounds = {
    1.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0, 16384.0};

}  // namespace quire
