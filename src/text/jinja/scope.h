// The names of one block of a template: the whole template, a turn of a loop, a call of a macro.
//
// A name that is not here is looked up in the parent, at the time of the look-up: a macro sees what
// was set after its definition, and a set in a loop is gone in the next turn.
//
// Threading: as Value. Owner: the Heap.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja/value.h"

namespace quire::jinja {

struct Scope {
  Scope* parent = nullptr;
  bool captured = false;  // a macro was defined here and may outlive the block
  // Few names: a search from the front beats a map. The text belongs to the template or the caller.
  std::vector<std::pair<std::string_view, Value>> names;

  void Set(std::string_view name, Value value) {
    for (auto& [known, old] : names) {
      if (known == name) {
        old = std::move(value);
        return;
      }
    }
    names.emplace_back(name, std::move(value));
  }

  const Value* Find(std::string_view name) const {
    for (const Scope* scope = this; scope != nullptr; scope = scope->parent) {
      for (const auto& [known, value] : scope->names) {
        if (known == name) return &value;
      }
    }
    return nullptr;
  }
};

}  // namespace quire::jinja
