// The functions a template finds without a definition: range, namespace, dict, raise_exception,
// strftime_now.
//
// Errors: raise_exception gives kInvalidArgument with exactly the template's message; see
// Runtime::raised(). Threading: as Value.
#pragma once

#include <string_view>

#include "base/status.h"
#include "text/jinja/arguments.h"
#include "text/jinja/runtime.h"

namespace quire::jinja {

// The name itself if there is such a function, else an empty text. The result lives for ever.
std::string_view FindFunction(std::string_view name);

// Requires: FindFunction gave `name`.
StatusOr<Value> CallFunction(Runtime* runtime, std::string_view name, const Arguments& arguments);

}  // namespace quire::jinja
