// The escapes of a template's string literals, as in Python: \n, \x41, \u00e9, \U0001F600, \101.
//
// Errors: kInvalidFile for a cut or impossible escape, kUnsupported for \N{name}.
// Threading: a function.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace quire::jinja {

// `literal` is what stands between the quotes. An escape Python does not know stays as it is.
StatusOr<std::string> UnescapeString(std::string_view literal);

}  // namespace quire::jinja
