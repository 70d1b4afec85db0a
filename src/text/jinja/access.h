// Attributes, subscripts, slices and iteration.
//
// As Jinja2's sandbox has it: x.y tries the attribute (a method, a field of a loop or namespace),
// then the key "y"; x["y"] tries the key, then the attribute. What is not there is undefined; any
// access to undefined itself is an error.
//
// Errors: kInvalidArgument. Threading: as Value.
#pragma once

#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/jinja/runtime.h"

namespace quire::jinja {

// `name` must outlive the rendering: it is a text of the template.
StatusOr<Value> GetAttribute(Runtime* runtime, const Value& object, std::string_view name);
StatusOr<Value> GetItem(Runtime* runtime, const Value& object, const Value& index);
// Null bounds are "not given".
StatusOr<Value> GetSlice(Runtime* runtime, const Value& object, const Value* start,
                         const Value* stop, const Value* step);

// "a.b.0", as the filters map, selectattr and join take it: each part an attribute or an index.
StatusOr<Value> GetPath(Runtime* runtime, const Value& object, const Value& path);

// What a for loop runs over: items, keys of a dict, characters of a text, nothing of undefined.
StatusOr<std::vector<Value>> Iterate(Runtime* runtime, const Value& value);

// Python's len(); counts characters of a text.
StatusOr<int64_t> Length(Runtime* runtime, const Value& value);

}  // namespace quire::jinja
