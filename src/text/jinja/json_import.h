// JSON as template values, with the caller's texts marked plain.
//
// Numbers: integers that fit 64 signed bits stay integers, larger ones become floats.
//
// Errors: kInvalidArgument for JSON nested too deep. Threading: as Value.
#pragma once

#include <nlohmann/json.hpp>

#include "base/status.h"
#include "text/jinja/runtime.h"

namespace quire::jinja {

enum class Trust {
  kCaller,    // every text in it, keys too, is marked plain
  kTemplate,  // as if it stood in the template: bos_token and the like
};

StatusOr<Value> ImportJson(Runtime* runtime, const nlohmann::ordered_json& json, Trust trust);

// A list of chat messages: all is kCaller but the roles that look like one (letters, digits, _ -
// .).
StatusOr<Value> ImportMessages(Runtime* runtime, const nlohmann::ordered_json& messages);

}  // namespace quire::jinja
