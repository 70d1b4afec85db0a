// The operators of expressions, with Python's meaning: + - * / // % **, comparisons, in.
//
// Integers have 64 bits: a result that does not fit is an error, not a wrap. Texts compare by code
// point. The percent sign between a text and a value (formatting) is refused.
//
// Errors: kInvalidArgument for operands that do not go together; kResourceExhausted past the
// limits. Threading: as Value.
#pragma once

#include "base/status.h"
#include "text/jinja/ast.h"
#include "text/jinja/runtime.h"

namespace quire::jinja {

StatusOr<Value> Arithmetic(Runtime* runtime, Operator op, const Value& left, const Value& right);
StatusOr<Value> Negate(const Value& value);

// One comparison of a chain.
StatusOr<bool> Compare(Runtime* runtime, Operator op, const Value& left, const Value& right);

// Python's ==.
StatusOr<bool> Equals(Runtime* runtime, const Value& left, const Value& right);
// Python's <.
StatusOr<bool> Less(Runtime* runtime, const Value& left, const Value& right);
// Python's `item in container`.
StatusOr<bool> Contains(Runtime* runtime, const Value& container, const Value& item);

// Where `part` starts in `text` from `from` on, or npos. Linear in both lengths.
size_t FindText(std::string_view text, std::string_view part, size_t from = 0);

}  // namespace quire::jinja
