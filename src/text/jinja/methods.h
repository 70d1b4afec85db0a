// The methods of texts, lists and dicts: content.split('x'), message.get('name'), ids.append(id).
//
// append, insert, extend and pop change the rendering's own copy, never the caller's JSON. Other
// methods that change a value (update, clear, ...) are refused, as Jinja2's immutable sandbox does.
//
// Errors: kInvalidArgument for wrong arguments; kUnsupported for a method of Python that is not
// here; kResourceExhausted past the limits. Threading: as Value.
#pragma once

#include <string_view>

#include "base/status.h"
#include "text/jinja/arguments.h"
#include "text/jinja/runtime.h"

namespace quire::jinja {

// The name if Python has such a method for values of that kind, whether it is supported or not;
// else an empty text. The result lives for ever.
std::string_view FindMethod(const Value& receiver, std::string_view name);

// Requires: FindMethod(receiver, name) gave `name`.
StatusOr<Value> CallMethod(Runtime* runtime, const Value& receiver, std::string_view name,
                           const Arguments& arguments);

StatusOr<Value> CallTextMethod(Runtime* runtime, const MarkedText& text, std::string_view name,
                               const Arguments& arguments);
StatusOr<Value> CallListMethod(Runtime* runtime, List* list, std::string_view name,
                               const Arguments& arguments);
StatusOr<Value> CallDictMethod(Runtime* runtime, const Dict& dict, std::string_view name,
                               const Arguments& arguments);

}  // namespace quire::jinja
