// Values as text, as Python's str() and repr() write them.
//
// str of a text is the text with its marks; of a container, the repr, which is plain as a whole if
// any text in it has a plain byte.
//
// Errors: kUnsupported for what Python shows as an address (functions, lazy sequences);
// kResourceExhausted past the limits. Threading: as Value.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "text/jinja/runtime.h"

namespace quire::jinja {

// Python's str().
StatusOr<TextRef> ToText(Runtime* runtime, const Value& value);

// Python's repr() of a float: the shortest digits that give it back; 1.0, 1e+16, inf, nan.
std::string FloatText(double value);

}  // namespace quire::jinja
