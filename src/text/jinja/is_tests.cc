#include "text/jinja/is_tests.h"

#include <cmath>

#include "text/jinja/operators.h"
#include "text/jinja/unicode.h"

namespace quire::jinja {
namespace {

using Check = bool (*)(const Value&);

// A test without arguments.
template <Check kCheck>
StatusOr<bool> Plain(Runtime*, const Value& value, const Arguments& arguments) {
  QUIRE_ASSIGN_OR_RETURN(const BoundArguments none, Bind("a test", arguments, {}));
  return kCheck(value);
}

// A test that is an operator: `x is ge 3`.
template <Operator kOperator>
StatusOr<bool> Comparison(Runtime* runtime, const Value& value, const Arguments& arguments) {
  QUIRE_ASSIGN_OR_RETURN(const BoundArguments bound, Bind("a test", arguments, {"other"}, 1));
  return Compare(runtime, kOperator, value, bound[0]);
}

bool IsDefined(const Value& value) { return !value.is_undefined(); }
bool IsUndefined(const Value& value) { return value.is_undefined(); }
bool IsNone(const Value& value) { return value.is_none(); }
bool IsString(const Value& value) { return value.is_text(); }
bool IsMapping(const Value& value) { return value.dict() != nullptr; }
bool IsBoolean(const Value& value) { return value.boolean() != nullptr; }
bool IsInteger(const Value& value) { return value.integer() != nullptr; }
bool IsFloat(const Value& value) { return value.real() != nullptr; }
bool IsNumber(const Value& value) { return IsInteger(value) || IsFloat(value) || IsBoolean(value); }
bool IsTrueItself(const Value& value) { return IsBoolean(value) && *value.boolean(); }
bool IsFalseItself(const Value& value) { return IsBoolean(value) && !*value.boolean(); }
bool IsCallable(const Value& value) { return value.function() != nullptr; }
bool IsIterable(const Value& value) {
  return value.is_undefined() || value.is_text() || value.list() != nullptr || IsMapping(value);
}
bool IsSequence(const Value& value) {
  if (value.list() != nullptr) return value.list()->kind != ListKind::kLazy;
  return value.is_undefined() || value.is_text() || IsMapping(value);
}

// str.islower() and str.isupper(): some cased character, and none of the other case.
template <bool kLower>
StatusOr<bool> IsAllOfCase(Runtime* runtime, const Value& value, const Arguments& arguments) {
  QUIRE_ASSIGN_OR_RETURN(const BoundArguments none, Bind("a test", arguments, {}));
  const MarkedText* text = value.text();
  if (text == nullptr) return false;
  QUIRE_RETURN_IF_ERROR(runtime->SpendCharacters(text->size()));
  bool found = false;
  for (size_t at = 0; at < text->size();) {
    const CodePoint c = Decode(text->bytes(), at);
    const bool lower = IsLower(c.value), upper = IsUpper(c.value);
    if (kLower ? upper : lower) return false;
    found = found || lower || upper;
    at += c.length;
  }
  return found;
}

StatusOr<bool> IsDivisibleBy(Runtime* runtime, const Value& value, const Arguments& arguments) {
  QUIRE_ASSIGN_OR_RETURN(const BoundArguments bound, Bind("divisibleby", arguments, {"num"}, 1));
  QUIRE_ASSIGN_OR_RETURN(const Value rest, Arithmetic(runtime, Operator::kModulo, value, bound[0]));
  return !IsTrue(rest);
}

template <int64_t kRemainder>
StatusOr<bool> HasParity(Runtime* runtime, const Value& value, const Arguments& arguments) {
  QUIRE_ASSIGN_OR_RETURN(const BoundArguments none, Bind("a test", arguments, {}));
  QUIRE_ASSIGN_OR_RETURN(const Value rest,
                         Arithmetic(runtime, Operator::kModulo, value, Value(int64_t{2})));
  return Equals(runtime, rest, Value(kRemainder));
}

StatusOr<bool> IsSameAs(Runtime* runtime, const Value& value, const Arguments& arguments) {
  QUIRE_ASSIGN_OR_RETURN(const BoundArguments bound, Bind("sameas", arguments, {"other"}, 1));
  if (value.identity() != nullptr) return value.identity() == bound[0].identity();
  if (std::string_view(KindName(value)) != KindName(bound[0])) return false;
  return Equals(runtime, value, bound[0]);
}

struct NamedTest {
  std::string_view name;
  IsTest test;
};

constexpr NamedTest kTests[] = {
    {"!=", Comparison<Operator::kNotEqual>},
    {"<", Comparison<Operator::kLess>},
    {"<=", Comparison<Operator::kLessEqual>},
    {"==", Comparison<Operator::kEqual>},
    {">", Comparison<Operator::kGreater>},
    {">=", Comparison<Operator::kGreaterEqual>},
    {"boolean", Plain<IsBoolean>},
    {"callable", Plain<IsCallable>},
    {"defined", Plain<IsDefined>},
    {"divisibleby", IsDivisibleBy},
    {"eq", Comparison<Operator::kEqual>},
    {"equalto", Comparison<Operator::kEqual>},
    {"even", HasParity<0>},
    {"false", Plain<IsFalseItself>},
    {"float", Plain<IsFloat>},
    {"ge", Comparison<Operator::kGreaterEqual>},
    {"greaterthan", Comparison<Operator::kGreater>},
    {"gt", Comparison<Operator::kGreater>},
    {"in", Comparison<Operator::kIn>},
    {"integer", Plain<IsInteger>},
    {"iterable", Plain<IsIterable>},
    {"le", Comparison<Operator::kLessEqual>},
    {"lessthan", Comparison<Operator::kLess>},
    {"lower", IsAllOfCase<true>},
    {"lt", Comparison<Operator::kLess>},
    {"mapping", Plain<IsMapping>},
    {"ne", Comparison<Operator::kNotEqual>},
    {"none", Plain<IsNone>},
    {"number", Plain<IsNumber>},
    {"odd", HasParity<1>},
    {"sameas", IsSameAs},
    {"sequence", Plain<IsSequence>},
    {"string", Plain<IsString>},
    {"true", Plain<IsTrueItself>},
    {"undefined", Plain<IsUndefined>},
    {"upper", IsAllOfCase<false>},
};

}  // namespace

IsTest FindIsTest(std::string_view name) {
  for (const NamedTest& entry : kTests) {
    if (entry.name == name) return entry.test;
  }
  return nullptr;
}

}  // namespace quire::jinja
