#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace quire {

void CheckFailed(const char* expression, const char* file, int line) {
  std::fprintf(stderr, "quire: bug: %s is false at %s:%d\n", expression, file, line);
  std::abort();
}

}  // namespace quire
