// SecondsSince: the time that has passed on the clock that does not jump.
//
// Threading: any.
#pragma once

#include <chrono>

namespace quire {

inline double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace quire
