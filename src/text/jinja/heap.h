// Owns what the values of one rendering point at, until the rendering ends.
//
// Nothing is freed before, so values may point at each other in circles and a nest of a million
// lists is destroyed without recursion. How much there can be is bounded by the steps of the
// rendering (text/jinja/runtime.h), which every allocation costs.
//
// Threading: as Value.
#pragma once

#include <deque>
#include <vector>

#include "text/jinja/dict.h"
#include "text/jinja/scope.h"
#include "text/jinja/value.h"

namespace quire::jinja {

class Heap {
 public:
  Heap() = default;
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  List* NewList(ListKind kind, std::vector<Value> items = {}) {
    return &lists_.emplace_back(List{kind, std::move(items)});
  }
  Dict* NewDict() { return &dicts_.emplace_back(); }
  Namespace* NewNamespace() { return &spaces_.emplace_back(); }
  Function* NewFunction() { return &functions_.emplace_back(); }
  Loop* NewLoop() { return &loops_.emplace_back(); }

  Scope* NewScope(Scope* parent) {
    if (free_scopes_.empty()) {
      scopes_.emplace_back().parent = parent;
      return &scopes_.back();
    }
    Scope* scope = free_scopes_.back();
    free_scopes_.pop_back();
    scope->parent = parent;
    return scope;
  }
  // The block of `scope` has ended. It is used again unless a macro still needs it.
  void Release(Scope* scope) {
    if (scope->captured) return;
    scope->names.clear();
    free_scopes_.push_back(scope);
  }

 private:
  std::deque<List> lists_;
  std::deque<Dict> dicts_;
  std::deque<Namespace> spaces_;
  std::deque<Function> functions_;
  std::deque<Loop> loops_;
  std::deque<Scope> scopes_;
  std::vector<Scope*> free_scopes_;
};

}  // namespace quire::jinja
