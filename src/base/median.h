// Median: of an even number of values the upper of the two in the middle. Requires: not empty.
#pragma once

#include <algorithm>
#include <vector>

namespace quire {

inline double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace quire
