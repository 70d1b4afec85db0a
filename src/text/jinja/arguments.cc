#include "text/jinja/arguments.h"

#include <algorithm>

namespace quire::jinja {

StatusOr<int64_t> BoundArguments::Integer(size_t i, int64_t fallback) const {
  if (!Has(i)) return fallback;
  if (const int64_t* integer = values_[i]->integer()) return *integer;
  if (const bool* boolean = values_[i]->boolean()) return int64_t{*boolean ? 1 : 0};
  return InvalidArgument("argument {} must be a whole number, there is a {}", i + 1,
                         KindName(*values_[i]));
}

StatusOr<MarkedText> BoundArguments::Text(size_t i, std::string_view fallback) const {
  if (!Has(i)) return MarkedText(std::string(fallback));
  if (const MarkedText* text = values_[i]->text()) return *text;
  return InvalidArgument("argument {} must be a text, there is a {}", i + 1, KindName(*values_[i]));
}

StatusOr<BoundArguments> Bind(std::string_view what, const Arguments& arguments,
                              std::initializer_list<std::string_view> names, size_t required) {
  if (arguments.positional.size() > names.size()) {
    return InvalidArgument("{} takes at most {} arguments, there are {}", what, names.size(),
                           arguments.positional.size());
  }
  std::vector<std::optional<Value>> values(arguments.positional.begin(),
                                           arguments.positional.end());
  values.resize(names.size());
  for (const auto& [name, value] : arguments.named) {
    const auto* found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) return InvalidArgument("{} has no argument '{}'", what, name);
    std::optional<Value>& place = values[static_cast<size_t>(found - names.begin())];
    if (place.has_value()) return InvalidArgument("{} got '{}' twice", what, name);
    place = value;
  }
  for (size_t i = 0; i < required; ++i) {
    if (!values[i].has_value()) return InvalidArgument("{} needs '{}'", what, *(names.begin() + i));
  }
  return BoundArguments(std::move(values));
}

}  // namespace quire::jinja
