// The filters of `x | name(...)`.
//
// Text filters are in text_filters.cc, those over lists and dicts in list_filters.cc.
//
// Errors: kInvalidArgument for inputs a filter cannot take; kResourceExhausted past the limits.
// Threading: as Value.
#pragma once

#include <string_view>

#include "base/status.h"
#include "text/jinja/arguments.h"
#include "text/jinja/runtime.h"

namespace quire::jinja {

using Filter = StatusOr<Value> (*)(Runtime* runtime, const Value& input,
                                   const Arguments& arguments);

// Null if there is no such filter.
Filter FindFilter(std::string_view name);

Filter FindTextFilter(std::string_view name);
Filter FindListFilter(std::string_view name);

}  // namespace quire::jinja
