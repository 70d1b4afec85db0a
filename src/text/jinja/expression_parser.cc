#include "text/jinja/expression_parser.h"

#include <optional>
#include <utility>

namespace quire::jinja {
namespace {

struct OperatorName {
  const char* text;
  Operator op;
};

template <size_t kCount>
std::optional<Operator> Match(const Token& token, const OperatorName (&names)[kCount]) {
  for (const OperatorName& name : names) {
    if (token.IsOperator(name.text)) return name.op;
  }
  return std::nullopt;
}

constexpr OperatorName kSums[] = {{"+", Operator::kAdd}, {"-", Operator::kSubtract}};
constexpr OperatorName kProducts[] = {{"*", Operator::kMultiply},
                                      {"/", Operator::kDivide},
                                      {"//", Operator::kFloorDivide},
                                      {"%", Operator::kModulo}};
constexpr OperatorName kComparisons[] = {
    {"==", Operator::kEqual},     {"!=", Operator::kNotEqual}, {"<", Operator::kLess},
    {"<=", Operator::kLessEqual}, {">", Operator::kGreater},   {">=", Operator::kGreaterEqual}};

}  // namespace

ExpressionParser::Result ExpressionParser::Parse(Choice choice) {
  return choice == Choice::kAllowed ? ParseChoice() : ParseOr();
}

ExpressionParser::Result ExpressionParser::ParseTuple(Choice choice, bool in_brackets) {
  Expression* tuple = New(ExpressionKind::kTuple);
  const auto ends = [&] {
    const Token& token = state_.current();
    return token.kind == TokenKind::kPrintEnd || token.kind == TokenKind::kBlockEnd ||
           token.IsOperator(")");
  };
  if (in_brackets && ends()) return state_.Finish(tuple);
  while (true) {
    QUIRE_ASSIGN_OR_RETURN(const Expression* item, Parse(choice));
    if (tuple->operands.empty() && !state_.current().IsOperator(",")) return item;
    tuple->operands.push_back(item);
    if (!state_.SkipOperator(",") || ends()) return state_.Finish(tuple);
  }
}

ExpressionParser::Result ExpressionParser::ParseTarget(bool attributes) {
  ParseState::Level level(&state_);
  QUIRE_RETURN_IF_ERROR(level.Check());
  Expression* tuple = New(ExpressionKind::kTuple);
  while (true) {
    QUIRE_ASSIGN_OR_RETURN(const Expression* item, ParseSingleTarget(attributes));
    if (tuple->operands.empty() && !state_.current().IsOperator(",")) return item;
    tuple->operands.push_back(item);
    if (!state_.SkipOperator(",")) return state_.Finish(tuple);
    const Token& token = state_.current();
    if (token.IsOperator(")") || token.IsOperator("=") || token.IsName("in")) {
      return state_.Finish(tuple);
    }
  }
}

ExpressionParser::Result ExpressionParser::ParseSingleTarget(bool attributes) {
  if (state_.SkipOperator("(")) {
    QUIRE_ASSIGN_OR_RETURN(const Expression* nested, ParseTarget(attributes));
    QUIRE_RETURN_IF_ERROR(state_.ExpectOperator(")"));
    return nested;
  }
  Expression* target = New(ExpressionKind::kName);
  QUIRE_ASSIGN_OR_RETURN(target->name, state_.TakeName());
  if (attributes && state_.SkipOperator(".")) {
    target->kind = ExpressionKind::kNamespaceRef;
    QUIRE_ASSIGN_OR_RETURN(target->attribute, state_.TakeName());
  }
  for (const char* reserved : {"true", "false", "none", "True", "False", "None", "loop"}) {
    if (target->name != reserved) continue;
    return InvalidFile("line {}: '{}' cannot be set", target->line, reserved);
  }
  return state_.Finish(target);
}

ExpressionParser::Result ExpressionParser::ParseChoice() {
  ParseState::Level level(&state_);
  QUIRE_RETURN_IF_ERROR(level.Check());
  QUIRE_ASSIGN_OR_RETURN(const Expression* node, ParseOr());
  while (state_.SkipName("if")) {
    Expression* choice = New(ExpressionKind::kChoice);
    QUIRE_ASSIGN_OR_RETURN(const Expression* condition, ParseOr());
    const Expression* otherwise = nullptr;
    if (state_.SkipName("else")) {
      QUIRE_ASSIGN_OR_RETURN(otherwise, ParseChoice());
    }
    choice->operands = {condition, node, otherwise};
    QUIRE_ASSIGN_OR_RETURN(node, state_.Finish(choice));
  }
  return node;
}

ExpressionParser::Result ExpressionParser::Binary(ExpressionKind kind, const Expression* left,
                                                  const Expression* right) {
  Expression* node = New(kind);
  node->operands = {left, right};
  return state_.Finish(node);
}

ExpressionParser::Result ExpressionParser::Arithmetic(Operator op, const Expression* left,
                                                      const Expression* right) {
  Expression* node = New(ExpressionKind::kArithmetic);
  node->operands = {left, right};
  node->operators = {op};
  return state_.Finish(node);
}

ExpressionParser::Result ExpressionParser::ParseOr() {
  QUIRE_ASSIGN_OR_RETURN(const Expression* left, ParseAnd());
  while (state_.SkipName("or")) {
    QUIRE_ASSIGN_OR_RETURN(const Expression* right, ParseAnd());
    QUIRE_ASSIGN_OR_RETURN(left, Binary(ExpressionKind::kOr, left, right));
  }
  return left;
}

ExpressionParser::Result ExpressionParser::ParseAnd() {
  QUIRE_ASSIGN_OR_RETURN(const Expression* left, ParseNot());
  while (state_.SkipName("and")) {
    QUIRE_ASSIGN_OR_RETURN(const Expression* right, ParseNot());
    QUIRE_ASSIGN_OR_RETURN(left, Binary(ExpressionKind::kAnd, left, right));
  }
  return left;
}

ExpressionParser::Result ExpressionParser::ParseNot() {
  if (!state_.current().IsName("not")) return ParseCompare();
  ParseState::Level level(&state_);
  QUIRE_RETURN_IF_ERROR(level.Check());
  Expression* node = New(ExpressionKind::kNot);
  state_.Take();
  QUIRE_ASSIGN_OR_RETURN(const Expression* operand, ParseNot());
  node->operands = {operand};
  return state_.Finish(node);
}

ExpressionParser::Result ExpressionParser::ParseCompare() {
  QUIRE_ASSIGN_OR_RETURN(const Expression* first, ParseSum());
  Expression* node = nullptr;
  while (true) {
    std::optional<Operator> op = Match(state_.current(), kComparisons);
    if (op.has_value()) {
      state_.Take();
    } else if (state_.SkipName("in")) {
      op = Operator::kIn;
    } else if (state_.current().IsName("not") && state_.next().IsName("in")) {
      state_.Take();
      state_.Take();
      op = Operator::kNotIn;
    } else {
      break;
    }
    QUIRE_ASSIGN_OR_RETURN(const Expression* right, ParseSum());
    if (node == nullptr) {
      node = New(ExpressionKind::kCompare);
      node->operands = {first};
    }
    node->operands.push_back(right);
    node->operators.push_back(*op);
  }
  if (node == nullptr) return first;
  return state_.Finish(node);
}

ExpressionParser::Result ExpressionParser::ParseSum() {
  QUIRE_ASSIGN_OR_RETURN(const Expression* left, ParseConcat());
  while (const std::optional<Operator> op = Match(state_.current(), kSums)) {
    state_.Take();
    QUIRE_ASSIGN_OR_RETURN(const Expression* right, ParseConcat());
    QUIRE_ASSIGN_OR_RETURN(left, Arithmetic(*op, left, right));
  }
  return left;
}

ExpressionParser::Result ExpressionParser::ParseConcat() {
  QUIRE_ASSIGN_OR_RETURN(const Expression* first, ParseProduct());
  if (!state_.current().IsOperator("~")) return first;
  Expression* node = New(ExpressionKind::kConcat);
  node->operands = {first};
  while (state_.SkipOperator("~")) {
    QUIRE_ASSIGN_OR_RETURN(const Expression* item, ParseProduct());
    node->operands.push_back(item);
  }
  return state_.Finish(node);
}

ExpressionParser::Result ExpressionParser::ParseProduct() {
  QUIRE_ASSIGN_OR_RETURN(const Expression* left, ParsePower());
  while (const std::optional<Operator> op = Match(state_.current(), kProducts)) {
    state_.Take();
    QUIRE_ASSIGN_OR_RETURN(const Expression* right, ParsePower());
    QUIRE_ASSIGN_OR_RETURN(left, Arithmetic(*op, left, right));
  }
  return left;
}

ExpressionParser::Result ExpressionParser::ParsePower() {
  QUIRE_ASSIGN_OR_RETURN(const Expression* left, ParseUnary(true));
  while (state_.SkipOperator("**")) {
    QUIRE_ASSIGN_OR_RETURN(const Expression* right, ParseUnary(true));
    QUIRE_ASSIGN_OR_RETURN(left, Arithmetic(Operator::kPower, left, right));
  }
  return left;
}

ExpressionParser::Result ExpressionParser::ParseUnary(bool with_filters) {
  ParseState::Level level(&state_);
  QUIRE_RETURN_IF_ERROR(level.Check());
  const Expression* node = nullptr;
  const bool minus = state_.current().IsOperator("-");
  if (minus || state_.current().IsOperator("+")) {
    Expression* sign = New(minus ? ExpressionKind::kNegate : ExpressionKind::kPlus);
    state_.Take();
    QUIRE_ASSIGN_OR_RETURN(const Expression* operand, ParseUnary(false));
    sign->operands = {operand};
    QUIRE_ASSIGN_OR_RETURN(node, state_.Finish(sign));
  } else {
    QUIRE_ASSIGN_OR_RETURN(node, ParsePrimary());
  }
  QUIRE_ASSIGN_OR_RETURN(node, ParsePostfix(node));
  if (!with_filters) return node;
  return ParseFilters(node);
}

}  // namespace quire::jinja
