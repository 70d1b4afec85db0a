// Mark: how a number of a plan came about.
#pragma once

#include <string_view>

namespace quire {

enum class Mark {
  kExact,      // counted by the code that allocates, or read from a file
  kMeasured,   // of this machine, now
  kEstimated,  // by a formula or a data sheet: the real number is near it
};

constexpr std::string_view MarkName(Mark mark) {
  switch (mark) {
    case Mark::kExact:
      return "exact";
    case Mark::kMeasured:
      return "measured";
    case Mark::kEstimated:
      return "estimated";
  }
  return "?";
}

}  // namespace quire
