// The tests of `x is ...`: defined, string, mapping, equalto, ...
//
// Errors: as of the operators. Threading: as Value.
#pragma once

#include <string_view>

#include "base/status.h"
#include "text/jinja/arguments.h"
#include "text/jinja/runtime.h"

namespace quire::jinja {

using IsTest = StatusOr<bool> (*)(Runtime* runtime, const Value& value, const Arguments& arguments);

// Null if there is no such test.
IsTest FindIsTest(std::string_view name);

}  // namespace quire::jinja
