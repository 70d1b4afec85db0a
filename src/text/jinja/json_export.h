// The tojson filter: json.dumps as chat templates expect it, which is not Jinja2's own (no HTML
// escapes, keys in their order).
//
// The result is plain as a whole if any text in the value has a plain byte.
//
// Errors: kInvalidArgument for what has no JSON (undefined, functions, namespaces);
// kResourceExhausted past the limits. Threading: as Value.
#pragma once

#include <optional>
#include <string>

#include "base/status.h"
#include "text/jinja/runtime.h"

namespace quire::jinja {

struct JsonStyle {
  bool ascii_only = false;  // ensure_ascii
  bool sort_keys = false;
  std::optional<std::string> indent;  // of one level; nothing: all on one line
  std::string item_separator = ", ";  // "," with an indent
  std::string key_separator = ": ";
};

StatusOr<Value> ExportJson(Runtime* runtime, const Value& value, const JsonStyle& style);

}  // namespace quire::jinja
