#include "text/jinja/functions.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "text/jinja/access.h"
#include "text/jinja/date_text.h"
#include "text/jinja/printing.h"

namespace quire::jinja {
namespace {

constexpr int64_t kMaxRange = 100'000;  // as Jinja2's sandbox

StatusOr<Value> Range(Runtime* runtime, const Arguments& arguments) {
  QUIRE_ASSIGN_OR_RETURN(const BoundArguments bound,
                         Bind("range", arguments, {"start", "stop", "step"}, 1));
  QUIRE_ASSIGN_OR_RETURN(const int64_t first, bound.Integer(0, 0));
  QUIRE_ASSIGN_OR_RETURN(const int64_t second, bound.Integer(1, 0));
  QUIRE_ASSIGN_OR_RETURN(const int64_t step, bound.Integer(2, 1));
  if (step == 0) return InvalidArgument("range's step must not be 0");
  const int64_t start = bound.Has(1) ? first : 0;
  const int64_t stop = bound.Has(1) ? second : first;
  std::vector<Value> items;
  for (int64_t i = start; step > 0 ? i < stop : i > stop;) {
    if (items.size() == kMaxRange) {
      return ResourceExhausted("range makes at most {} numbers", kMaxRange);
    }
    items.push_back(Value(i));
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return runtime->MakeList(ListKind::kLazy, std::move(items));
}

// The entries of a mapping or pairs, then the named arguments.
Status FillDict(Runtime* runtime, const Arguments& arguments, Dict* dict) {
  if (arguments.positional.size() > 1) {
    return InvalidArgument("namespace and dict take one mapping and name=value");
  }
  if (!arguments.positional.empty()) {
    const Value& source = arguments.positional[0];
    if (const Dict* entries = source.dict()) {
      for (const auto& [key, value] : entries->entries()) dict->Set(key, value);
    } else {
      QUIRE_ASSIGN_OR_RETURN(const std::vector<Value> pairs, Iterate(runtime, source));
      for (const Value& pair : pairs) {
        const List* list = pair.list();
        if (list == nullptr || list->items.size() != 2 ||
            !dict->Set(list->items[0], list->items[1])) {
          return InvalidArgument("namespace and dict need pairs of key and value");
        }
      }
    }
  }
  for (const auto& [name, value] : arguments.named) dict->Set(name, value);
  return runtime->Spend(6 + 2 * dict->size());
}

StatusOr<Value> MakeNamespace(Runtime* runtime, const Arguments& arguments) {
  Namespace* space = runtime->heap().NewNamespace();
  QUIRE_RETURN_IF_ERROR(FillDict(runtime, arguments, &space->attributes));
  return Value(space);
}

StatusOr<Value> MakeDict(Runtime* runtime, const Arguments& arguments) {
  Dict* dict = runtime->heap().NewDict();
  QUIRE_RETURN_IF_ERROR(FillDict(runtime, arguments, dict));
  return Value(dict);
}

StatusOr<Value> RaiseException(Runtime* runtime, const Arguments& arguments) {
  QUIRE_ASSIGN_OR_RETURN(const BoundArguments bound,
                         Bind("raise_exception", arguments, {"message"}, 1));
  QUIRE_ASSIGN_OR_RETURN(const TextRef message, ToText(runtime, bound[0]));
  runtime->set_raised();
  return Status(StatusCode::kInvalidArgument, message->bytes());
}

StatusOr<Value> StrftimeNow(Runtime* runtime, const Arguments& arguments) {
  QUIRE_ASSIGN_OR_RETURN(const BoundArguments bound,
                         Bind("strftime_now", arguments, {"format"}, 1));
  QUIRE_ASSIGN_OR_RETURN(const MarkedText format, bound.Text(0, ""));
  QUIRE_ASSIGN_OR_RETURN(std::string date, FormatDate(format.bytes(), runtime->now()));
  return runtime->MakeText(MarkedText::Whole(std::move(date), format.any_plain()));
}

struct NamedFunction {
  std::string_view name;
  StatusOr<Value> (*function)(Runtime*, const Arguments&);
};

constexpr NamedFunction kFunctions[] = {
    {"dict", MakeDict}, {"namespace", MakeNamespace},  {"raise_exception", RaiseException},
    {"range", Range},   {"strftime_now", StrftimeNow},
};

const NamedFunction* Find(std::string_view name) {
  const NamedFunction* found =
      std::find_if(std::begin(kFunctions), std::end(kFunctions),
                   [name](const NamedFunction& entry) { return entry.name == name; });
  return found == std::end(kFunctions) ? nullptr : found;
}

}  // namespace

std::string_view FindFunction(std::string_view name) {
  const NamedFunction* found = Find(name);
  return found == nullptr ? std::string_view() : found->name;
}

StatusOr<Value> CallFunction(Runtime* runtime, std::string_view name, const Arguments& arguments) {
  return Find(name)->function(runtime, arguments);
}

}  // namespace quire::jinja
