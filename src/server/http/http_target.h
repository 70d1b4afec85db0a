// ParseTarget: the path and the query of a request line, percent-decoded once.
//
// One reading only: what a check sees is what a route sees. The path is cut at '/' before it is
// decoded, so that "%2F" stays inside a segment; what has two readings is refused: an absolute or
// other form that does not begin with '/', an empty segment ("//", a '/' at the end), "." and ".."
// in any spelling, '\', '#', control bytes, bytes that are no UTF-8, '%' without two hex digits.
//
// Threading: a pure function.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace quire {

struct HttpTarget {
  std::vector<std::string> segments;                       // none for "/"
  std::vector<std::pair<std::string, std::string>> query;  // in order; '+' is a space
};

// kInvalidArgument, with what is wrong.
StatusOr<HttpTarget> ParseTarget(std::string_view target);

}  // namespace quire
