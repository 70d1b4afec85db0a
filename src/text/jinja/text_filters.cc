// Filters that make texts or numbers: tojson, trim, string, upper, int, indent, ...
#include <charconv>
#include <cmath>
#include <string>
#include <utility>

#include "text/jinja/access.h"
#include "text/jinja/filters.h"
#include "text/jinja/json_export.h"
#include "text/jinja/printing.h"
#include "text/jinja/text_operations.h"

namespace quire::jinja {
namespace {

StatusOr<Value> ToJson(Runtime* runtime, const Value& input, const Arguments& arguments) {
  QUIRE_ASSIGN_OR_RETURN(
      const BoundArguments bound,
      Bind("tojson", arguments, {"ensure_ascii", "indent", "separators", "sort_keys"}));
  JsonStyle style;
  style.ascii_only = bound.IsTrueAt(0);
  style.sort_keys = bound.IsTrueAt(3);
  if (bound.Has(1) && !bound[1].is_none()) {
    if (const MarkedText* text = bound[1].text()) {
      style.indent = text->bytes();
    } else {
      QUIRE_ASSIGN_OR_RETURN(const int64_t width, bound.Integer(1, 0));
      if (width > 64) return InvalidArgument("tojson: an indent of {}; at most 64", width);
      style.indent = std::string(static_cast<size_t>(std::max<int64_t>(width, 0)), ' ');
    }
    style.item_separator = ",";
  }
  if (bound.Has(2) && !bound[2].is_none()) {
    const List* list = bound[2].list();
    if (list == nullptr || list->items.size() != 2 || !list->items[0].is_text() ||
        !list->items[1].is_text()) {
      return InvalidArgument("tojson: separators must be two texts");
    }
    style.item_separator = list->items[0].text()->bytes();
    style.key_separator = list->items[1].text()->bytes();
  }
  return ExportJson(runtime, input, style);
}

StatusOr<Value> ToString(Runtime* runtime, const Value& input, const Arguments& arguments) {
  QUIRE_ASSIGN_OR_RETURN(const BoundArguments none, Bind("string", arguments, {}));
  QUIRE_ASSIGN_OR_RETURN(TextRef text, ToText(runtime, input));
  return Value(std::move(text));
}

StatusOr<Value> Trim(Runtime* runtime, const Value& input, const Arguments& arguments) {
  QUIRE_ASSIGN_OR_RETURN(const BoundArguments bound, Bind("trim", arguments, {"chars"}));
  QUIRE_ASSIGN_OR_RETURN(const TextRef text, ToText(runtime, input));
  const Value* characters = bound.Get(0);
  return Strip(runtime, *text, characters == nullptr ? nullptr : characters->text(), Side::kBoth);
}

template <CaseChange kChange>
StatusOr<Value> Case(Runtime* runtime, const Value& input, const Arguments& arguments) {
  QUIRE_ASSIGN_OR_RETURN(const BoundArguments none, Bind("a filter of case", arguments, {}));
  QUIRE_ASSIGN_OR_RETURN(const TextRef text, ToText(runtime, input));
  return ChangeCase(runtime, *text, kChange);
}

StatusOr<Value> ReplaceFilter(Runtime* runtime, const Value& input, const Arguments& arguments) {
  QUIRE_ASSIGN_OR_RETURN(const BoundArguments bound,
                         Bind("replace", arguments, {"old", "new", "count"}, 2));
  QUIRE_ASSIGN_OR_RETURN(const TextRef text, ToText(runtime, input));
  QUIRE_ASSIGN_OR_RETURN(const TextRef old_part, ToText(runtime, bound[0]));
  QUIRE_ASSIGN_OR_RETURN(const TextRef new_part, ToText(runtime, bound[1]));
  const bool counted = bound.Has(2) && !bound[2].is_none();
  int64_t most = -1;
  if (counted) {
    QUIRE_ASSIGN_OR_RETURN(most, bound.Integer(2, -1));
  }
  return Replace(runtime, *text, *old_part, *new_part, most);
}

// Each line but the first (and empty ones) with `width` spaces or a given text in front.
StatusOr<Value> Indent(Runtime* runtime, const Value& input, const Arguments& arguments) {
  QUIRE_ASSIGN_OR_RETURN(const BoundArguments bound,
                         Bind("indent", arguments, {"width", "first", "blank"}));
  QUIRE_ASSIGN_OR_RETURN(const TextRef text, ToText(runtime, input));
  MarkedText indent;
  if (bound.Has(0) && bound[0].is_text()) {
    indent = *bound[0].text();
  } else {
    QUIRE_ASSIGN_OR_RETURN(const int64_t width, bound.Integer(0, 4));
    if (width > 1024) return InvalidArgument("indent: a width of {}; at most 1024", width);
    indent = MarkedText(std::string(static_cast<size_t>(std::max<int64_t>(width, 0)), ' '));
  }
  // As Jinja2: a line end more, so that a last empty line counts.
  MarkedText with_end = *text;
  with_end.Append("\n", false);
  QUIRE_ASSIGN_OR_RETURN(const Value lines, SplitLines(runtime, with_end));
  MarkedText result;
  for (size_t i = 0; i < lines.list()->items.size(); ++i) {
    const MarkedText& line = *lines.list()->items[i].text();
    if (i > 0) result.Append("\n", false);
    const bool indented = i == 0 ? bound.IsTrueAt(1) : bound.IsTrueAt(2) || !line.empty();
    if (indented) result.Append(indent);
    result.Append(line);
    QUIRE_RETURN_IF_ERROR(runtime->CheckTextSize(result.size()));
    QUIRE_RETURN_IF_ERROR(runtime->SpendBytes(indent.cost()));
  }
  return runtime->MakeText(std::move(result));
}

StatusOr<Value> ToInteger(Runtime*, const Value& input, const Arguments& arguments) {
  QUIRE_ASSIGN_OR_RETURN(const BoundArguments bound, Bind("int", arguments, {"default"}));
  const Value fallback = bound.Has(0) ? bound[0] : Value(int64_t{0});
  if (input.integer() != nullptr) return input;
  if (const bool* boolean = input.boolean()) return Value(int64_t{*boolean ? 1 : 0});
  double real = NAN;
  if (input.real() != nullptr) {
    real = *input.real();
  } else if (const MarkedText* text = input.text()) {
    const size_t begin = text->bytes().find_first_not_of(" \t\n");
    const size_t last = text->bytes().find_last_not_of(" \t\n");
    if (begin == std::string::npos) return fallback;
    const char* first = text->bytes().data() + begin;
    const char* end = text->bytes().data() + last + 1;
    if (*first == '+' && end - first > 1 && first[1] != '-') ++first;
    int64_t integer = 0;
    const auto read = std::from_chars(first, end, integer);
    if (read.ec == std::errc() && read.ptr == end) return Value(integer);
    const auto read_real = std::from_chars(first, end, real);
    if (read_real.ec != std::errc() || read_real.ptr != end) return fallback;
  }
  if (!(std::fabs(real) < 9.2e18)) return fallback;
  return Value(static_cast<int64_t>(real));
}

StatusOr<Value> ToFloat(Runtime*, const Value& input, const Arguments& arguments) {
  QUIRE_ASSIGN_OR_RETURN(const BoundArguments bound, Bind("float", arguments, {"default"}));
  if (input.real() != nullptr) return input;
  if (const int64_t* integer = input.integer()) return Value(static_cast<double>(*integer));
  if (const bool* boolean = input.boolean()) return Value(*boolean ? 1.0 : 0.0);
  if (const MarkedText* text = input.text()) {
    double real = 0;
    const char* end = text->bytes().data() + text->size();
    const auto read = std::from_chars(text->bytes().data(), end, real);
    if (read.ec == std::errc() && read.ptr == end) return Value(real);
  }
  return bound.Has(0) ? bound[0] : Value(0.0);
}

StatusOr<Value> Absolute(Runtime*, const Value& input, const Arguments& arguments) {
  QUIRE_ASSIGN_OR_RETURN(const BoundArguments none, Bind("abs", arguments, {}));
  if (const double* real = input.real()) return Value(std::fabs(*real));
  const int64_t* integer = input.integer();
  if (integer == nullptr || *integer == INT64_MIN) {
    return InvalidArgument("abs needs a number, there is a {}", KindName(input));
  }
  return Value(*integer < 0 ? -*integer : *integer);
}

// Nothing is escaped in a prompt, so a safe text is a text.
StatusOr<Value> Safe(Runtime* runtime, const Value& input, const Arguments& arguments) {
  return ToString(runtime, input, arguments);
}

struct NamedFilter {
  std::string_view name;
  Filter filter;
};

constexpr NamedFilter kFilters[] = {
    {"abs", Absolute},
    {"capitalize", Case<CaseChange::kCapitalize>},
    {"float", ToFloat},
    {"indent", Indent},
    {"int", ToInteger},
    {"lower", Case<CaseChange::kLower>},
    {"replace", ReplaceFilter},
    {"safe", Safe},
    {"string", ToString},
    {"title", Case<CaseChange::kTitle>},
    {"tojson", ToJson},
    {"trim", Trim},
    {"upper", Case<CaseChange::kUpper>},
};

}  // namespace

Filter FindTextFilter(std::string_view name) {
  for (const NamedFilter& entry : kFilters) {
    if (entry.name == name) return entry.filter;
  }
  return nullptr;
}

Filter FindFilter(std::string_view name) {
  const Filter filter = FindTextFilter(name);
  return filter != nullptr ? filter : FindListFilter(name);
}

}  // namespace quire::jinja
