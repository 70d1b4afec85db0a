// Parses a template: text, {{ }}, and the statements if, for, set, with, macro, break, continue.
//
// Also read: {% generation %}, which marks a model's words for training and changes no text.
// Refused by name: include, import, from, extends, block, call, filter, autoescape, recursive
// loops.
//
// Errors: kInvalidFile with the line; kUnsupported for what is refused; kResourceExhausted for too
// deep nesting. Threading: a function.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "base/status.h"
#include "text/jinja/ast.h"

namespace quire::jinja {

struct ParsedTemplate {
  Ast ast;
  // Every name that an expression reads, whether the template sets it or the caller must.
  std::set<std::string> names_read;
};

StatusOr<ParsedTemplate> ParseTemplate(std::string_view source);

}  // namespace quire::jinja
