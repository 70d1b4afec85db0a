// The expressions of Interpreter. One function a kind, so that a level of recursion stays small.
#include <string_view>
#include <utility>

#include "text/jinja/access.h"
#include "text/jinja/dict.h"
#include "text/jinja/filters.h"
#include "text/jinja/functions.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/is_tests.h"
#include "text/jinja/methods.h"
#include "text/jinja/operators.h"
#include "text/jinja/printing.h"

namespace quire::jinja {

StatusOr<Value> Interpreter::Evaluate(const Expression& node, Scope* scope) {
  if (node.kind == ExpressionKind::kConstant) return node.constant;
  QUIRE_RETURN_IF_ERROR(runtime_.Spend(1));
  ++depth_;
  const Status depth = CheckDepth();
  StatusOr<Value> value = depth.ok() ? EvaluateOne(node, scope) : StatusOr<Value>(depth);
  --depth_;
  return value;
}

StatusOr<Value> Interpreter::EvaluateOne(const Expression& node, Scope* scope) {
  switch (node.kind) {
    case ExpressionKind::kName:
      return EvaluateName(node, scope);
    case ExpressionKind::kList:
    case ExpressionKind::kTuple:
      return EvaluateList(node, scope);
    case ExpressionKind::kDict:
      return EvaluateDict(node, scope);
    case ExpressionKind::kAttribute:
      return EvaluateAttribute(node, scope);
    case ExpressionKind::kSubscript:
      return EvaluateSubscript(node, scope);
    case ExpressionKind::kSlice:
      return EvaluateSlice(node, scope);
    case ExpressionKind::kCall:
      return EvaluateCall(node, scope);
    case ExpressionKind::kFilter:
      return EvaluateFilter(node, scope);
    case ExpressionKind::kTest:
      return EvaluateTest(node, scope);
    case ExpressionKind::kNot:
    case ExpressionKind::kNegate:
    case ExpressionKind::kPlus:
      return EvaluateUnary(node, scope);
    case ExpressionKind::kAnd:
    case ExpressionKind::kOr:
      return EvaluateLogic(node, scope);
    case ExpressionKind::kChoice:
      return EvaluateChoice(node, scope);
    case ExpressionKind::kConcat:
      return EvaluateConcat(node, scope);
    case ExpressionKind::kArithmetic:
      return EvaluateArithmetic(node, scope);
    case ExpressionKind::kCompare:
      return EvaluateCompare(node, scope);
    default:
      return node.constant;
  }
}

StatusOr<Value> Interpreter::EvaluateName(const Expression& node, Scope* scope) {
  if (const Value* value = scope->Find(node.name)) return *value;
  const std::string_view builtin = FindFunction(node.name);
  if (builtin.empty()) return Value(Undefined{std::make_shared<const MarkedText>(node.name)});
  Function* function = runtime_.heap().NewFunction();
  function->kind = Function::Kind::kBuiltin;
  function->name = builtin;
  return Value(function);
}

StatusOr<Value> Interpreter::EvaluateList(const Expression& node, Scope* scope) {
  std::vector<Value> items;
  items.reserve(node.operands.size());
  for (const Expression* operand : node.operands) {
    QUIRE_ASSIGN_OR_RETURN(Value item, Evaluate(*operand, scope));
    items.push_back(std::move(item));
  }
  const ListKind kind = node.kind == ExpressionKind::kList ? ListKind::kList : ListKind::kTuple;
  return runtime_.MakeList(kind, std::move(items));
}

StatusOr<Value> Interpreter::EvaluateDict(const Expression& node, Scope* scope) {
  QUIRE_RETURN_IF_ERROR(runtime_.Spend(2 + 2 * node.operands.size()));
  Dict* dict = runtime_.heap().NewDict();
  for (size_t i = 0; i + 1 < node.operands.size(); i += 2) {
    QUIRE_ASSIGN_OR_RETURN(const Value key, Evaluate(*node.operands[i], scope));
    QUIRE_ASSIGN_OR_RETURN(Value value, Evaluate(*node.operands[i + 1], scope));
    if (key.is_text()) QUIRE_RETURN_IF_ERROR(runtime_.SpendBytes(key.text()->size()));
    if (!dict->Set(key, std::move(value))) {
      return InvalidArgument("a {} cannot be a key", KindName(key));
    }
  }
  return Value(dict);
}

StatusOr<Value> Interpreter::EvaluateAttribute(const Expression& node, Scope* scope) {
  QUIRE_ASSIGN_OR_RETURN(const Value object, Evaluate(*node.operands[0], scope));
  return GetAttribute(&runtime_, object, node.name);
}

StatusOr<Value> Interpreter::EvaluateSubscript(const Expression& node, Scope* scope) {
  QUIRE_ASSIGN_OR_RETURN(const Value object, Evaluate(*node.operands[0], scope));
  QUIRE_ASSIGN_OR_RETURN(const Value index, Evaluate(*node.operands[1], scope));
  return GetItem(&runtime_, object, index);
}

StatusOr<Value> Interpreter::EvaluateSlice(const Expression& node, Scope* scope) {
  QUIRE_ASSIGN_OR_RETURN(const Value object, Evaluate(*node.operands[0], scope));
  Value bounds[3];
  const Value* given[3] = {nullptr, nullptr, nullptr};
  for (size_t i = 0; i < 3; ++i) {
    if (node.operands[i + 1] == nullptr) continue;
    QUIRE_ASSIGN_OR_RETURN(bounds[i], Evaluate(*node.operands[i + 1], scope));
    given[i] = &bounds[i];
  }
  return GetSlice(&runtime_, object, given[0], given[1], given[2]);
}

StatusOr<Arguments> Interpreter::EvaluateArguments(const Expression& node, Scope* scope) {
  Arguments arguments;
  for (size_t i = 1; i < node.operands.size(); ++i) {
    QUIRE_ASSIGN_OR_RETURN(Value value, Evaluate(*node.operands[i], scope));
    arguments.positional.push_back(std::move(value));
  }
  for (const auto& [name, expression] : node.keywords) {
    QUIRE_ASSIGN_OR_RETURN(Value value, Evaluate(*expression, scope));
    arguments.named.emplace_back(name, std::move(value));
  }
  return arguments;
}

StatusOr<Value> Interpreter::EvaluateCall(const Expression& node, Scope* scope) {
  QUIRE_ASSIGN_OR_RETURN(const Value callee, Evaluate(*node.operands[0], scope));
  const Function* function = callee.function();
  if (function == nullptr) {
    const Expression& named = *node.operands[0];
    return InvalidArgument("'{}' cannot be called: it is {}",
                           named.name.empty() ? "the value" : named.name, KindName(callee));
  }
  QUIRE_ASSIGN_OR_RETURN(const Arguments arguments, EvaluateArguments(node, scope));
  switch (function->kind) {
    case Function::Kind::kMethod:
      return CallMethod(&runtime_, function->receiver, function->name, arguments);
    case Function::Kind::kMacro:
      return CallMacro(*function, arguments);
    default:
      return CallFunction(&runtime_, function->name, arguments);
  }
}

StatusOr<Value> Interpreter::CallMacro(const Function& function, const Arguments& arguments) {
  const Statement& macro = *function.macro;
  if (arguments.positional.size() > macro.parameters.size()) {
    return InvalidArgument("macro '{}' takes at most {} arguments, there are {}", macro.name,
                           macro.parameters.size(), arguments.positional.size());
  }
  QUIRE_RETURN_IF_ERROR(runtime_.Spend(4));
  Scope* scope = runtime_.heap().NewScope(function.scope);
  const auto call = [&]() -> StatusOr<Value> {
    for (size_t i = 0; i < arguments.positional.size(); ++i) {
      scope->Set(macro.parameters[i].name, arguments.positional[i]);
    }
    for (const auto& [name, value] : arguments.named) {
      bool known = false;
      for (size_t i = arguments.positional.size(); i < macro.parameters.size(); ++i) {
        known = known || macro.parameters[i].name == name;
      }
      if (!known) return InvalidArgument("macro '{}' has no argument '{}'", macro.name, name);
      scope->Set(name, value);
    }
    for (size_t i = arguments.positional.size(); i < macro.parameters.size(); ++i) {
      const Parameter& parameter = macro.parameters[i];
      bool given = false;
      for (const auto& [name, value] : arguments.named) given = given || name == parameter.name;
      if (given) continue;
      Value value(Undefined{std::make_shared<const MarkedText>(parameter.name)});
      if (parameter.fallback != nullptr) {
        QUIRE_ASSIGN_OR_RETURN(value, Evaluate(*parameter.fallback, scope));
      }
      scope->Set(parameter.name, std::move(value));
    }
    MarkedText text;
    QUIRE_RETURN_IF_ERROR(Run(macro.body, scope, &text));
    return runtime_.MakeText(std::move(text));
  };
  StatusOr<Value> result = call();
  runtime_.heap().Release(scope);
  return result;
}

StatusOr<Value> Interpreter::EvaluateFilter(const Expression& node, Scope* scope) {
  QUIRE_ASSIGN_OR_RETURN(const Value input, Evaluate(*node.operands[0], scope));
  QUIRE_ASSIGN_OR_RETURN(const Arguments arguments, EvaluateArguments(node, scope));
  return FindFilter(node.name)(&runtime_, input, arguments);
}

StatusOr<Value> Interpreter::EvaluateTest(const Expression& node, Scope* scope) {
  QUIRE_ASSIGN_OR_RETURN(const Value input, Evaluate(*node.operands[0], scope));
  QUIRE_ASSIGN_OR_RETURN(const Arguments arguments, EvaluateArguments(node, scope));
  QUIRE_ASSIGN_OR_RETURN(const bool result, FindIsTest(node.name)(&runtime_, input, arguments));
  return Value(result);
}

StatusOr<Value> Interpreter::EvaluateUnary(const Expression& node, Scope* scope) {
  QUIRE_ASSIGN_OR_RETURN(const Value operand, Evaluate(*node.operands[0], scope));
  if (node.kind == ExpressionKind::kNot) return Value(!IsTrue(operand));
  if (node.kind == ExpressionKind::kNegate) return Negate(operand);
  return Arithmetic(&runtime_, Operator::kAdd, Value(int64_t{0}), operand);
}

StatusOr<Value> Interpreter::EvaluateLogic(const Expression& node, Scope* scope) {
  QUIRE_ASSIGN_OR_RETURN(Value left, Evaluate(*node.operands[0], scope));
  if (IsTrue(left) == (node.kind == ExpressionKind::kOr)) return left;
  return Evaluate(*node.operands[1], scope);
}

StatusOr<Value> Interpreter::EvaluateChoice(const Expression& node, Scope* scope) {
  QUIRE_ASSIGN_OR_RETURN(const Value condition, Evaluate(*node.operands[0], scope));
  const Expression* chosen = node.operands[IsTrue(condition) ? 1 : 2];
  if (chosen == nullptr) return Value();
  return Evaluate(*chosen, scope);
}

StatusOr<Value> Interpreter::EvaluateConcat(const Expression& node, Scope* scope) {
  MarkedText result;
  for (const Expression* operand : node.operands) {
    QUIRE_ASSIGN_OR_RETURN(const Value value, Evaluate(*operand, scope));
    QUIRE_ASSIGN_OR_RETURN(const TextRef text, ToText(&runtime_, value));
    QUIRE_RETURN_IF_ERROR(Append(*text, &result));
  }
  return Value(std::move(result));
}

StatusOr<Value> Interpreter::EvaluateArithmetic(const Expression& node, Scope* scope) {
  QUIRE_ASSIGN_OR_RETURN(const Value left, Evaluate(*node.operands[0], scope));
  QUIRE_ASSIGN_OR_RETURN(const Value right, Evaluate(*node.operands[1], scope));
  return Arithmetic(&runtime_, node.operators[0], left, right);
}

StatusOr<Value> Interpreter::EvaluateCompare(const Expression& node, Scope* scope) {
  QUIRE_ASSIGN_OR_RETURN(Value left, Evaluate(*node.operands[0], scope));
  for (size_t i = 0; i < node.operators.size(); ++i) {
    QUIRE_ASSIGN_OR_RETURN(Value right, Evaluate(*node.operands[i + 1], scope));
    QUIRE_ASSIGN_OR_RETURN(const bool holds, Compare(&runtime_, node.operators[i], left, right));
    if (!holds) return Value(false);
    left = std::move(right);
  }
  return Value(true);
}

}  // namespace quire::jinja
