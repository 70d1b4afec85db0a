// Parses the expressions of a template, with Jinja2's precedences.
//
// From weak to strong: if-else; or; and; not; comparisons and in; + -; ~; * / // %; **; unary - and
// +; filters and tests; . [] (). But a unary minus takes what stands behind it before a filter
// does: -x|abs is (-x)|abs, as in Jinja2.
//
// Errors: kInvalidFile with the line; kUnsupported for a filter or test that is not there;
// kResourceExhausted for too deep nesting. Threading: one parser, one thread.
#pragma once

#include "text/jinja/parse_state.h"

namespace quire::jinja {

class ExpressionParser {
 public:
  explicit ExpressionParser(ParseState* state) : state_(*state) {}

  enum class Choice { kAllowed, kNotAllowed };  // may "x if c else y" stand here?

  StatusOr<const Expression*> Parse(Choice choice = Choice::kAllowed);
  // One expression, or several with commas, which make a tuple. With `in_brackets`, none is a tuple
  // as well.
  StatusOr<const Expression*> ParseTuple(Choice choice = Choice::kAllowed,
                                         bool in_brackets = false);
  // What a for or set assigns to: names, nested in tuples; name.attribute if `attributes`.
  StatusOr<const Expression*> ParseTarget(bool attributes);

 private:
  using Result = StatusOr<const Expression*>;

  Result ParseChoice();
  Result ParseOr();
  Result ParseAnd();
  Result ParseNot();
  Result ParseCompare();
  Result ParseSum();
  Result ParseConcat();
  Result ParseProduct();
  Result ParsePower();
  Result ParseUnary(bool with_filters);
  Result ParsePrimary();
  Result ParseName();
  Result ParseList();
  Result ParseDict();
  Result ParsePostfix(const Expression* node);
  Result ParseFilters(const Expression* node);
  Result ParseFilter(const Expression* node);
  Result ParseTest(const Expression* node);
  Result ParseAttribute(const Expression* object);
  Result ParseSubscript(const Expression* object);
  Result ParseCall(const Expression* callee);
  Status ParseArguments(Expression* node);
  Result ParseSingleTarget(bool attributes);

  Expression* New(ExpressionKind kind) {
    return state_.ast().NewExpression(kind, state_.current().line);
  }
  Result Binary(ExpressionKind kind, const Expression* left, const Expression* right);
  Result Arithmetic(Operator op, const Expression* left, const Expression* right);

  ParseState& state_;
};

}  // namespace quire::jinja
