#include "text/jinja/methods.h"

#include <algorithm>
#include <iterator>

namespace quire::jinja {
namespace {

constexpr std::string_view kTextMethods[] = {
    "capitalize",   "casefold",    "center",    "count",      "encode",       "endswith",
    "expandtabs",   "find",        "format",    "format_map", "index",        "isalnum",
    "isalpha",      "isascii",     "isdecimal", "isdigit",    "isidentifier", "islower",
    "isnumeric",    "isprintable", "isspace",   "istitle",    "isupper",      "join",
    "ljust",        "lower",       "lstrip",    "maketrans",  "partition",    "removeprefix",
    "removesuffix", "replace",     "rfind",     "rindex",     "rjust",        "rpartition",
    "rsplit",       "rstrip",      "split",     "splitlines", "startswith",   "strip",
    "swapcase",     "title",       "translate", "upper",      "zfill"};
constexpr std::string_view kListMethods[] = {"append", "clear",   "copy",   "count",
                                             "extend", "index",   "insert", "pop",
                                             "remove", "reverse", "sort"};
constexpr std::string_view kTupleMethods[] = {"count", "index"};
constexpr std::string_view kDictMethods[] = {"clear",      "copy",   "fromkeys", "get",
                                             "items",      "keys",   "pop",      "popitem",
                                             "setdefault", "update", "values"};

template <size_t kCount>
std::string_view FindName(const std::string_view (&names)[kCount], std::string_view name) {
  const auto* found = std::find(std::begin(names), std::end(names), name);
  return found == std::end(names) ? std::string_view() : *found;
}

}  // namespace

std::string_view FindMethod(const Value& receiver, std::string_view name) {
  if (receiver.is_text()) return FindName(kTextMethods, name);
  if (receiver.dict() != nullptr) return FindName(kDictMethods, name);
  const List* list = receiver.list();
  if (list == nullptr || list->kind == ListKind::kLazy) return {};
  return list->kind == ListKind::kTuple ? FindName(kTupleMethods, name)
                                        : FindName(kListMethods, name);
}

StatusOr<Value> CallMethod(Runtime* runtime, const Value& receiver, std::string_view name,
                           const Arguments& arguments) {
  if (const MarkedText* text = receiver.text()) {
    return CallTextMethod(runtime, *text, name, arguments);
  }
  if (const Dict* dict = receiver.dict()) return CallDictMethod(runtime, *dict, name, arguments);
  return CallListMethod(runtime, receiver.list(), name, arguments);
}

}  // namespace quire::jinja
