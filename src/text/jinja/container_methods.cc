#include <algorithm>
#include <utility>

#include "text/jinja/access.h"
#include "text/jinja/methods.h"
#include "text/jinja/operators.h"

namespace quire::jinja {
namespace {

StatusOr<Value> Append(Runtime* runtime, List* list, const Arguments& arguments) {
  QUIRE_ASSIGN_OR_RETURN(const BoundArguments bound, Bind("append", arguments, {"item"}, 1));
  QUIRE_RETURN_IF_ERROR(runtime->Spend(1));
  list->items.push_back(bound[0]);
  return Value(None{});
}

StatusOr<Value> Extend(Runtime* runtime, List* list, const Arguments& arguments) {
  QUIRE_ASSIGN_OR_RETURN(const BoundArguments bound, Bind("extend", arguments, {"items"}, 1));
  QUIRE_ASSIGN_OR_RETURN(const std::vector<Value> items, Iterate(runtime, bound[0]));
  list->items.insert(list->items.end(), items.begin(), items.end());
  return Value(None{});
}

StatusOr<Value> Insert(Runtime* runtime, List* list, const Arguments& arguments) {
  QUIRE_ASSIGN_OR_RETURN(const BoundArguments bound,
                         Bind("insert", arguments, {"index", "item"}, 2));
  QUIRE_ASSIGN_OR_RETURN(int64_t at, bound.Integer(0, 0));
  const int64_t length = static_cast<int64_t>(list->items.size());
  if (at < 0) at += length;
  at = std::clamp<int64_t>(at, 0, length);
  QUIRE_RETURN_IF_ERROR(runtime->Spend(1 + static_cast<size_t>(length - at)));
  list->items.insert(list->items.begin() + at, bound[1]);
  return Value(None{});
}

StatusOr<Value> Pop(Runtime* runtime, List* list, const Arguments& arguments) {
  QUIRE_ASSIGN_OR_RETURN(const BoundArguments bound, Bind("pop", arguments, {"index"}));
  QUIRE_ASSIGN_OR_RETURN(int64_t at, bound.Integer(0, -1));
  const int64_t length = static_cast<int64_t>(list->items.size());
  if (at < 0) at += length;
  if (at < 0 || at >= length) return InvalidArgument("pop from a list without such an item");
  QUIRE_RETURN_IF_ERROR(runtime->Spend(1 + static_cast<size_t>(length - at)));
  Value item = list->items[at];
  list->items.erase(list->items.begin() + at);
  return item;
}

StatusOr<Value> CountOrIndex(Runtime* runtime, const List& list, bool count,
                             const Arguments& arguments) {
  QUIRE_ASSIGN_OR_RETURN(const BoundArguments bound, Bind("count", arguments, {"item"}, 1));
  int64_t matches = 0;
  for (size_t i = 0; i < list.items.size(); ++i) {
    QUIRE_ASSIGN_OR_RETURN(const bool same, Equals(runtime, list.items[i], bound[0]));
    if (same && !count) return Value(static_cast<int64_t>(i));
    matches += same ? 1 : 0;
  }
  if (!count) return InvalidArgument("index: the item is not in the list");
  return Value(matches);
}

enum class View { kKeys, kValues, kItems };

StatusOr<Value> MakeView(Runtime* runtime, const Dict& dict, View view,
                         const Arguments& arguments) {
  QUIRE_ASSIGN_OR_RETURN(const BoundArguments none, Bind("items", arguments, {}));
  std::vector<Value> items;
  items.reserve(dict.size());
  for (const auto& [key, value] : dict.entries()) {
    Value item = view == View::kKeys ? key : value;
    if (view == View::kItems) {
      QUIRE_ASSIGN_OR_RETURN(item, runtime->MakeList(ListKind::kTuple, {key, value}));
    }
    items.push_back(std::move(item));
  }
  return runtime->MakeList(ListKind::kLazy, std::move(items));
}

StatusOr<Value> Get(Runtime* runtime, const Dict& dict, const Arguments& arguments) {
  QUIRE_ASSIGN_OR_RETURN(const BoundArguments bound, Bind("get", arguments, {"key", "default"}, 1));
  QUIRE_RETURN_IF_ERROR(runtime->SpendBytes(bound[0].is_text() ? bound[0].text()->size() : 0));
  if (const Value* value = dict.Find(bound[0])) return *value;
  return bound.Has(1) ? bound[1] : Value(None{});
}

StatusOr<Value> CopyDict(Runtime* runtime, const Dict& dict, const Arguments& arguments) {
  QUIRE_ASSIGN_OR_RETURN(const BoundArguments none, Bind("copy", arguments, {}));
  QUIRE_RETURN_IF_ERROR(runtime->Spend(1 + dict.size()));
  Dict* copy = runtime->heap().NewDict();
  *copy = dict;
  return Value(copy);
}

}  // namespace

StatusOr<Value> CallListMethod(Runtime* runtime, List* list, std::string_view name,
                               const Arguments& arguments) {
  if (name == "append") return Append(runtime, list, arguments);
  if (name == "extend") return Extend(runtime, list, arguments);
  if (name == "insert") return Insert(runtime, list, arguments);
  if (name == "pop") return Pop(runtime, list, arguments);
  if (name == "count") return CountOrIndex(runtime, *list, true, arguments);
  if (name == "index") return CountOrIndex(runtime, *list, false, arguments);
  if (name == "copy") return runtime->MakeList(list->kind, list->items);
  return Unsupported("the method {}() of lists is not supported", name);
}

StatusOr<Value> CallDictMethod(Runtime* runtime, const Dict& dict, std::string_view name,
                               const Arguments& arguments) {
  if (name == "get") return Get(runtime, dict, arguments);
  if (name == "items") return MakeView(runtime, dict, View::kItems, arguments);
  if (name == "keys") return MakeView(runtime, dict, View::kKeys, arguments);
  if (name == "values") return MakeView(runtime, dict, View::kValues, arguments);
  if (name == "copy") return CopyDict(runtime, dict, arguments);
  return Unsupported("the method {}() of mappings is not supported", name);
}

}  // namespace quire::jinja
