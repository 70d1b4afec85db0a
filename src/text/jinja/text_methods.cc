#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "text/jinja/access.h"
#include "text/jinja/methods.h"
#include "text/jinja/operators.h"
#include "text/jinja/text_operations.h"
#include "text/jinja/unicode.h"

namespace quire::jinja {
namespace {

// Null for an argument that was not given or is none.
StatusOr<const MarkedText*> OptionalText(const BoundArguments& bound, size_t i) {
  const Value* value = bound.Get(i);
  if (value == nullptr || value->is_none()) return static_cast<const MarkedText*>(nullptr);
  if (value->text() != nullptr) return value->text();
  return InvalidArgument("argument {} must be a text, there is a {}", i + 1, KindName(*value));
}

StatusOr<Value> StripMethod(Runtime* runtime, const MarkedText& text, Side side,
                            const Arguments& arguments) {
  QUIRE_ASSIGN_OR_RETURN(const BoundArguments bound, Bind("strip", arguments, {"chars"}));
  QUIRE_ASSIGN_OR_RETURN(const MarkedText* characters, OptionalText(bound, 0));
  return Strip(runtime, text, characters, side);
}

StatusOr<Value> SplitMethod(Runtime* runtime, const MarkedText& text, Side from,
                            const Arguments& arguments) {
  QUIRE_ASSIGN_OR_RETURN(const BoundArguments bound, Bind("split", arguments, {"sep", "maxsplit"}));
  QUIRE_ASSIGN_OR_RETURN(const MarkedText* separator, OptionalText(bound, 0));
  QUIRE_ASSIGN_OR_RETURN(const int64_t most, bound.Integer(1, -1));
  return Split(runtime, text, separator, most, from);
}

StatusOr<Value> ReplaceMethod(Runtime* runtime, const MarkedText& text,
                              const Arguments& arguments) {
  QUIRE_ASSIGN_OR_RETURN(const BoundArguments bound,
                         Bind("replace", arguments, {"old", "new", "count"}, 2));
  QUIRE_ASSIGN_OR_RETURN(const MarkedText old_part, bound.Text(0, ""));
  QUIRE_ASSIGN_OR_RETURN(const MarkedText new_part, bound.Text(1, ""));
  QUIRE_ASSIGN_OR_RETURN(const int64_t most, bound.Integer(2, -1));
  return Replace(runtime, text, old_part, new_part, most);
}

// startswith and endswith: a text or a tuple of them.
StatusOr<Value> HasEnd(Runtime* runtime, const MarkedText& text, bool at_start,
                       const Arguments& arguments) {
  QUIRE_ASSIGN_OR_RETURN(const BoundArguments bound, Bind("startswith", arguments, {"part"}, 1));
  std::vector<Value> parts = {bound[0]};
  if (const List* tuple = bound[0].list()) parts = tuple->items;
  for (const Value& part : parts) {
    if (!part.is_text()) {
      return InvalidArgument("startswith and endswith need texts, there is a {}", KindName(part));
    }
    const std::string& bytes = part.text()->bytes();
    QUIRE_RETURN_IF_ERROR(runtime->SpendBytes(bytes.size()));
    const bool found = at_start ? text.bytes().starts_with(bytes) : text.bytes().ends_with(bytes);
    if (found) return Value(true);
  }
  return Value(false);
}

// find, rfind, index, rindex: counts characters; -1 or an error if it is not there.
StatusOr<Value> FindMethodOf(Runtime* runtime, const MarkedText& text, bool from_right,
                             bool must_find, const Arguments& arguments) {
  QUIRE_ASSIGN_OR_RETURN(const BoundArguments bound, Bind("find", arguments, {"part"}, 1));
  QUIRE_ASSIGN_OR_RETURN(const MarkedText part, bound.Text(0, ""));
  QUIRE_RETURN_IF_ERROR(runtime->SpendSearch(text.size(), part.size()));
  size_t at = FindText(text.bytes(), part.bytes());
  for (size_t next = at; from_right && next != std::string::npos && next < text.size();) {
    next = FindText(text.bytes(), part.bytes(), next + 1);
    if (next != std::string::npos) at = next;
    QUIRE_RETURN_IF_ERROR(runtime->SpendCharacters(part.size()));  // each search reads the part
  }
  if (at != std::string::npos) {
    return Value(static_cast<int64_t>(CountCharacters(text.bytes().substr(0, at))));
  }
  if (must_find) return InvalidArgument("index: '{}' is not in the text", part.bytes());
  return Value(int64_t{-1});
}

StatusOr<Value> CountMethod(Runtime* runtime, const MarkedText& text, const Arguments& arguments) {
  QUIRE_ASSIGN_OR_RETURN(const BoundArguments bound, Bind("count", arguments, {"part"}, 1));
  QUIRE_ASSIGN_OR_RETURN(const MarkedText part, bound.Text(0, ""));
  QUIRE_RETURN_IF_ERROR(runtime->SpendSearch(text.size(), part.size()));
  if (part.empty()) return Value(static_cast<int64_t>(CountCharacters(text.bytes()) + 1));
  int64_t count = 0;
  for (size_t at = FindText(text.bytes(), part.bytes()); at != std::string::npos;
       at = FindText(text.bytes(), part.bytes(), at + part.size())) {
    QUIRE_RETURN_IF_ERROR(runtime->Spend(1));
    ++count;
  }
  return Value(count);
}

StatusOr<Value> JoinMethod(Runtime* runtime, const MarkedText& text, const Arguments& arguments) {
  QUIRE_ASSIGN_OR_RETURN(const BoundArguments bound, Bind("join", arguments, {"items"}, 1));
  QUIRE_ASSIGN_OR_RETURN(const std::vector<Value> items, Iterate(runtime, bound[0]));
  for (const Value& item : items) {
    if (!item.is_text()) {
      return InvalidArgument("join needs texts, there is a {}", KindName(item));
    }
  }
  return Join(runtime, items, text);
}

StatusOr<Value> PartitionMethod(Runtime* runtime, const MarkedText& text,
                                const Arguments& arguments) {
  QUIRE_ASSIGN_OR_RETURN(const BoundArguments bound, Bind("partition", arguments, {"sep"}, 1));
  QUIRE_ASSIGN_OR_RETURN(const MarkedText part, bound.Text(0, ""));
  if (part.empty()) return InvalidArgument("partition needs a separator that is not empty");
  QUIRE_RETURN_IF_ERROR(runtime->SpendSearch(text.cost(), part.size()));
  const size_t found = FindText(text.bytes(), part.bytes());
  const size_t begin = found == std::string::npos ? text.size() : found;
  const size_t end = found == std::string::npos ? text.size() : found + part.size();
  return runtime->MakeList(ListKind::kTuple,
                           {Value(text.Slice(0, begin)), Value(text.Slice(begin, end)),
                            Value(text.Slice(end, text.size()))});
}

StatusOr<Value> RemoveEnd(Runtime* runtime, const MarkedText& text, bool at_start,
                          const Arguments& arguments) {
  QUIRE_ASSIGN_OR_RETURN(const BoundArguments bound, Bind("removeprefix", arguments, {"part"}, 1));
  QUIRE_ASSIGN_OR_RETURN(const MarkedText part, bound.Text(0, ""));
  const bool found =
      at_start ? text.bytes().starts_with(part.bytes()) : text.bytes().ends_with(part.bytes());
  const size_t cut = found ? part.size() : 0;
  return runtime->MakeText(at_start ? text.Slice(cut, text.size())
                                    : text.Slice(0, text.size() - cut));
}

// isdigit, isalpha, isalnum of ASCII, isspace and isascii of all: every character, and at least
// one.
StatusOr<Value> AllCharacters(Runtime* runtime, const MarkedText& text, bool (*check)(uint32_t),
                              const Arguments& arguments) {
  QUIRE_ASSIGN_OR_RETURN(const BoundArguments none, Bind("a check of characters", arguments, {}));
  QUIRE_RETURN_IF_ERROR(runtime->SpendCharacters(text.size()));
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = Decode(text.bytes(), at);
    if (!check(c.value)) return Value(false);
    at += c.length;
  }
  return Value(!text.empty());
}

bool IsDigit(uint32_t c) { return c >= '0' && c <= '9'; }
bool IsLetter(uint32_t c) {
  return c < 0x80 ? (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') : IsCased(c);
}
bool IsLetterOrDigit(uint32_t c) { return IsLetter(c) || IsDigit(c); }

StatusOr<Value> CaseMethod(Runtime* runtime, const MarkedText& text, CaseChange change,
                           const Arguments& arguments) {
  QUIRE_ASSIGN_OR_RETURN(const BoundArguments none, Bind("a method of case", arguments, {}));
  return ChangeCase(runtime, text, change);
}

}  // namespace

StatusOr<Value> CallTextMethod(Runtime* runtime, const MarkedText& text, std::string_view name,
                               const Arguments& arguments) {
  if (name == "strip") return StripMethod(runtime, text, Side::kBoth, arguments);
  if (name == "lstrip") return StripMethod(runtime, text, Side::kLeft, arguments);
  if (name == "rstrip") return StripMethod(runtime, text, Side::kRight, arguments);
  if (name == "split") return SplitMethod(runtime, text, Side::kLeft, arguments);
  if (name == "rsplit") return SplitMethod(runtime, text, Side::kRight, arguments);
  if (name == "startswith") return HasEnd(runtime, text, true, arguments);
  if (name == "endswith") return HasEnd(runtime, text, false, arguments);
  if (name == "replace") return ReplaceMethod(runtime, text, arguments);
  if (name == "upper") return CaseMethod(runtime, text, CaseChange::kUpper, arguments);
  if (name == "lower") return CaseMethod(runtime, text, CaseChange::kLower, arguments);
  if (name == "title") return CaseMethod(runtime, text, CaseChange::kTitleMethod, arguments);
  if (name == "capitalize") return CaseMethod(runtime, text, CaseChange::kCapitalize, arguments);
  if (name == "find") return FindMethodOf(runtime, text, false, false, arguments);
  if (name == "rfind") return FindMethodOf(runtime, text, true, false, arguments);
  if (name == "index") return FindMethodOf(runtime, text, false, true, arguments);
  if (name == "rindex") return FindMethodOf(runtime, text, true, true, arguments);
  if (name == "count") return CountMethod(runtime, text, arguments);
  if (name == "join") return JoinMethod(runtime, text, arguments);
  if (name == "partition") return PartitionMethod(runtime, text, arguments);
  if (name == "removeprefix") return RemoveEnd(runtime, text, true, arguments);
  if (name == "removesuffix") return RemoveEnd(runtime, text, false, arguments);
  if (name == "splitlines" && arguments.positional.empty() && arguments.named.empty()) {
    return SplitLines(runtime, text);
  }
  if (name == "isdigit") return AllCharacters(runtime, text, IsDigit, arguments);
  if (name == "isalpha") return AllCharacters(runtime, text, IsLetter, arguments);
  if (name == "isalnum") return AllCharacters(runtime, text, IsLetterOrDigit, arguments);
  if (name == "isspace") return AllCharacters(runtime, text, IsSpace, arguments);
  return Unsupported("the method {}() of texts is not supported", name);
}

}  // namespace quire::jinja
