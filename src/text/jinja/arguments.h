// The arguments of a call, and how they meet the names of what is called.
//
// Threading: as Value.
#pragma once

#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/errors.h"
#include "base/status.h"
#include "text/jinja/value.h"

namespace quire::jinja {

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string_view, Value>> named;
};

// Arguments put in the order of a function's parameters.
class BoundArguments {
 public:
  explicit BoundArguments(std::vector<std::optional<Value>> values) : values_(std::move(values)) {}

  bool Has(size_t i) const { return values_[i].has_value(); }
  // Requires: Has(i).
  const Value& operator[](size_t i) const { return *values_[i]; }
  // Null if it was not given.
  const Value* Get(size_t i) const { return values_[i].has_value() ? &*values_[i] : nullptr; }
  bool IsTrueAt(size_t i) const { return Has(i) && IsTrue(*values_[i]); }

  StatusOr<int64_t> Integer(size_t i, int64_t fallback) const;
  // `fallback` if it was not given; an error for what is no text.
  StatusOr<MarkedText> Text(size_t i, std::string_view fallback) const;

 private:
  std::vector<std::optional<Value>> values_;
};

// The first `required` of `names` must be given. `what` is what is called, for messages.
StatusOr<BoundArguments> Bind(std::string_view what, const Arguments& arguments,
                              std::initializer_list<std::string_view> names, size_t required = 0);

}  // namespace quire::jinja
