// Stable sorting of values, as sorted() does it.
//
// Errors: kInvalidArgument for values without an order; kResourceExhausted past the limits.
// Threading: as Value.
#pragma once

#include <utility>
#include <vector>

#include "base/status.h"
#include "text/jinja/runtime.h"

namespace quire::jinja {

using KeyedValue = std::pair<Value, Value>;  // what it is sorted by; what it is

// With `ignore_case`, keys that are texts count in lower case. Equal keys keep their order, also
// when `reversed`.
Status SortByKey(Runtime* runtime, bool ignore_case, bool reversed,
                 std::vector<KeyedValue>* values);

}  // namespace quire::jinja
