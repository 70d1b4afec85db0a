// Filters over lists and dicts: length, join, items, map, selectattr, dictsort, ...
#include <algorithm>
#include <string>
#include <utility>

#include "text/jinja/access.h"
#include "text/jinja/filters.h"
#include "text/jinja/is_tests.h"
#include "text/jinja/operators.h"
#include "text/jinja/sorting.h"
#include "text/jinja/text_operations.h"

namespace quire::jinja {
namespace {

StatusOr<Value> LengthFilter(Runtime* runtime, const Value& input, const Arguments& arguments) {
  QUIRE_ASSIGN_OR_RETURN(const BoundArguments none, Bind("length", arguments, {}));
  QUIRE_ASSIGN_OR_RETURN(const int64_t length, Length(runtime, input));
  return Value(length);
}

StatusOr<Value> Default(Runtime*, const Value& input, const Arguments& arguments) {
  QUIRE_ASSIGN_OR_RETURN(const BoundArguments bound,
                         Bind("default", arguments, {"default_value", "boolean"}));
  if (!input.is_undefined() && !(bound.IsTrueAt(1) && !IsTrue(input))) return input;
  return bound.Has(0) ? bound[0] : Value(MarkedText());
}

StatusOr<Value> JoinFilter(Runtime* runtime, const Value& input, const Arguments& arguments) {
  QUIRE_ASSIGN_OR_RETURN(const BoundArguments bound, Bind("join", arguments, {"d", "attribute"}));
  QUIRE_ASSIGN_OR_RETURN(const MarkedText separator, bound.Text(0, ""));
  QUIRE_ASSIGN_OR_RETURN(std::vector<Value> items, Iterate(runtime, input));
  for (Value& item : items) {
    if (!bound.Has(1)) break;
    QUIRE_ASSIGN_OR_RETURN(item, GetPath(runtime, item, bound[1]));
  }
  return Join(runtime, items, separator);
}

StatusOr<Value> ToList(Runtime* runtime, const Value& input, const Arguments& arguments) {
  QUIRE_ASSIGN_OR_RETURN(const BoundArguments none, Bind("list", arguments, {}));
  QUIRE_ASSIGN_OR_RETURN(std::vector<Value> items, Iterate(runtime, input));
  return runtime->MakeList(ListKind::kList, std::move(items));
}

StatusOr<Value> MakePair(Runtime* runtime, const Value& key, const Value& value) {
  return runtime->MakeList(ListKind::kTuple, {key, value});
}

StatusOr<Value> Items(Runtime* runtime, const Value& input, const Arguments& arguments) {
  QUIRE_ASSIGN_OR_RETURN(const BoundArguments none, Bind("items", arguments, {}));
  std::vector<Value> pairs;
  if (input.is_undefined()) return runtime->MakeList(ListKind::kLazy, std::move(pairs));
  if (input.dict() == nullptr) {
    return InvalidArgument("items needs a mapping, there is a {}", KindName(input));
  }
  for (const auto& [key, value] : input.dict()->entries()) {
    QUIRE_ASSIGN_OR_RETURN(Value pair, MakePair(runtime, key, value));
    pairs.push_back(std::move(pair));
  }
  return runtime->MakeList(ListKind::kLazy, std::move(pairs));
}

StatusOr<Value> DictSort(Runtime* runtime, const Value& input, const Arguments& arguments) {
  QUIRE_ASSIGN_OR_RETURN(const BoundArguments bound,
                         Bind("dictsort", arguments, {"case_sensitive", "by", "reverse"}));
  if (input.dict() == nullptr) {
    return InvalidArgument("dictsort needs a mapping, there is a {}", KindName(input));
  }
  QUIRE_ASSIGN_OR_RETURN(const MarkedText by, bound.Text(1, "key"));
  if (by.bytes() != "key" && by.bytes() != "value") {
    return InvalidArgument("dictsort sorts by 'key' or 'value', not by '{}'", by.bytes());
  }
  std::vector<KeyedValue> sorted;
  for (const auto& [key, value] : input.dict()->entries()) {
    QUIRE_ASSIGN_OR_RETURN(Value pair, MakePair(runtime, key, value));
    sorted.emplace_back(by.bytes() == "key" ? key : value, std::move(pair));
  }
  QUIRE_RETURN_IF_ERROR(SortByKey(runtime, !bound.IsTrueAt(0), bound.IsTrueAt(2), &sorted));
  std::vector<Value> pairs;
  for (auto& [key, pair] : sorted) pairs.push_back(std::move(pair));
  return runtime->MakeList(ListKind::kList, std::move(pairs));
}

StatusOr<Value> Sort(Runtime* runtime, const Value& input, const Arguments& arguments) {
  QUIRE_ASSIGN_OR_RETURN(const BoundArguments bound,
                         Bind("sort", arguments, {"reverse", "case_sensitive", "attribute"}));
  QUIRE_ASSIGN_OR_RETURN(std::vector<Value> items, Iterate(runtime, input));
  std::vector<KeyedValue> sorted;
  for (Value& item : items) {
    Value key = item;
    if (bound.Has(2)) {
      QUIRE_ASSIGN_OR_RETURN(key, GetPath(runtime, item, bound[2]));
    }
    sorted.emplace_back(std::move(key), std::move(item));
  }
  QUIRE_RETURN_IF_ERROR(SortByKey(runtime, !bound.IsTrueAt(1), bound.IsTrueAt(0), &sorted));
  items.clear();
  for (auto& [key, item] : sorted) items.push_back(std::move(item));
  return runtime->MakeList(ListKind::kList, std::move(items));
}

// map('upper', ...) and map(attribute='a.b', default=...).
StatusOr<Value> Map(Runtime* runtime, const Value& input, const Arguments& arguments) {
  QUIRE_ASSIGN_OR_RETURN(std::vector<Value> items, Iterate(runtime, input));
  if (arguments.positional.empty()) {
    QUIRE_ASSIGN_OR_RETURN(const BoundArguments bound,
                           Bind("map", arguments, {"attribute", "default"}, 1));
    for (Value& item : items) {
      QUIRE_ASSIGN_OR_RETURN(item, GetPath(runtime, item, bound[0]));
      if (item.is_undefined() && bound.Has(1)) item = bound[1];
    }
    return runtime->MakeList(ListKind::kLazy, std::move(items));
  }
  const MarkedText* name = arguments.positional[0].text();
  const Filter filter = name == nullptr ? nullptr : FindFilter(name->bytes());
  if (filter == nullptr) return InvalidArgument("map needs the name of a filter");
  // Each name of a long list of them would be a level of recursion.
  if (filter == Map) return Unsupported("map of map is not supported");
  Arguments rest = arguments;
  rest.positional.erase(rest.positional.begin());
  for (Value& item : items) {
    QUIRE_ASSIGN_OR_RETURN(item, filter(runtime, item, rest));
  }
  return runtime->MakeList(ListKind::kLazy, std::move(items));
}

// select, reject, selectattr and rejectattr.
template <bool kKeep, bool kByAttribute>
StatusOr<Value> Select(Runtime* runtime, const Value& input, const Arguments& arguments) {
  QUIRE_ASSIGN_OR_RETURN(std::vector<Value> items, Iterate(runtime, input));
  Arguments rest = arguments;
  Value path;
  if (kByAttribute) {
    if (rest.positional.empty()) return InvalidArgument("selectattr needs an attribute's name");
    path = rest.positional[0];
    rest.positional.erase(rest.positional.begin());
  }
  IsTest test = nullptr;
  if (!rest.positional.empty()) {
    const MarkedText* name = rest.positional[0].text();
    test = name == nullptr ? nullptr : FindIsTest(name->bytes());
    if (test == nullptr) return InvalidArgument("select and reject need the name of a test");
    rest.positional.erase(rest.positional.begin());
  }
  std::vector<Value> kept;
  for (Value& item : items) {
    Value tested = item;
    if (kByAttribute) {
      QUIRE_ASSIGN_OR_RETURN(tested, GetPath(runtime, item, path));
    }
    bool passes = IsTrue(tested);
    if (test != nullptr) {
      QUIRE_ASSIGN_OR_RETURN(passes, test(runtime, tested, rest));
    }
    if (passes == kKeep) kept.push_back(std::move(item));
  }
  return runtime->MakeList(ListKind::kLazy, std::move(kept));
}

StatusOr<Value> First(Runtime* runtime, const Value& input, const Arguments& arguments) {
  QUIRE_ASSIGN_OR_RETURN(const BoundArguments none, Bind("first", arguments, {}));
  QUIRE_ASSIGN_OR_RETURN(const std::vector<Value> items, Iterate(runtime, input));
  return items.empty() ? Value() : items.front();
}

StatusOr<Value> Last(Runtime* runtime, const Value& input, const Arguments& arguments) {
  QUIRE_ASSIGN_OR_RETURN(const BoundArguments none, Bind("last", arguments, {}));
  QUIRE_ASSIGN_OR_RETURN(const std::vector<Value> items, Iterate(runtime, input));
  return items.empty() ? Value() : items.back();
}

StatusOr<Value> Reverse(Runtime* runtime, const Value& input, const Arguments& arguments) {
  QUIRE_ASSIGN_OR_RETURN(const BoundArguments none, Bind("reverse", arguments, {}));
  QUIRE_ASSIGN_OR_RETURN(std::vector<Value> items, Iterate(runtime, input));
  std::reverse(items.begin(), items.end());
  if (input.is_text()) return Join(runtime, items, MarkedText());
  return runtime->MakeList(ListKind::kLazy, std::move(items));
}

StatusOr<Value> Unique(Runtime* runtime, const Value& input, const Arguments& arguments) {
  QUIRE_ASSIGN_OR_RETURN(const BoundArguments bound, Bind("unique", arguments, {"case_sensitive"}));
  QUIRE_ASSIGN_OR_RETURN(std::vector<Value> items, Iterate(runtime, input));
  Dict* seen = runtime->heap().NewDict();
  std::vector<Value> kept;
  for (Value& item : items) {
    Value key = item;
    if (item.is_text() && !bound.IsTrueAt(0)) {
      QUIRE_ASSIGN_OR_RETURN(key, ChangeCase(runtime, *item.text(), CaseChange::kLower));
    }
    if (seen->Find(key) != nullptr) continue;
    if (!seen->Set(key, Value(true))) {
      return InvalidArgument("unique needs texts or numbers, there is a {}", KindName(key));
    }
    kept.push_back(std::move(item));
  }
  return runtime->MakeList(ListKind::kLazy, std::move(kept));
}

StatusOr<Value> Sum(Runtime* runtime, const Value& input, const Arguments& arguments) {
  QUIRE_ASSIGN_OR_RETURN(const BoundArguments bound,
                         Bind("sum", arguments, {"attribute", "start"}));
  QUIRE_ASSIGN_OR_RETURN(const std::vector<Value> items, Iterate(runtime, input));
  Value total = bound.Has(1) ? bound[1] : Value(int64_t{0});
  for (const Value& item : items) {
    Value term = item;
    if (bound.Has(0) && !bound[0].is_none()) {
      QUIRE_ASSIGN_OR_RETURN(term, GetPath(runtime, item, bound[0]));
    }
    QUIRE_ASSIGN_OR_RETURN(total, Arithmetic(runtime, Operator::kAdd, total, term));
  }
  return total;
}

template <bool kLargest>
StatusOr<Value> Extreme(Runtime* runtime, const Value& input, const Arguments& arguments) {
  QUIRE_ASSIGN_OR_RETURN(const BoundArguments none, Bind("min or max", arguments, {}));
  QUIRE_ASSIGN_OR_RETURN(const std::vector<Value> items, Iterate(runtime, input));
  Value best = items.empty() ? Value() : items.front();
  for (size_t i = 1; i < items.size(); ++i) {
    QUIRE_ASSIGN_OR_RETURN(const bool better, kLargest ? Less(runtime, best, items[i])
                                                       : Less(runtime, items[i], best));
    if (better) best = items[i];
  }
  return best;
}

struct NamedFilter {
  std::string_view name;
  Filter filter;
};

constexpr NamedFilter kFilters[] = {
    {"count", LengthFilter},
    {"d", Default},
    {"default", Default},
    {"dictsort", DictSort},
    {"first", First},
    {"items", Items},
    {"join", JoinFilter},
    {"last", Last},
    {"length", LengthFilter},
    {"list", ToList},
    {"map", Map},
    {"max", Extreme<true>},
    {"min", Extreme<false>},
    {"reject", Select<false, false>},
    {"rejectattr", Select<false, true>},
    {"reverse", Reverse},
    {"select", Select<true, false>},
    {"selectattr", Select<true, true>},
    {"sort", Sort},
    {"sum", Sum},
    {"unique", Unique},
};

}  // namespace

Filter FindListFilter(std::string_view name) {
  for (const NamedFilter& entry : kFilters) {
    if (entry.name == name) return entry.filter;
  }
  return nullptr;
}

}  // namespace quire::jinja
