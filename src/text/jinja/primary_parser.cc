// The strong half of ExpressionParser: names, literals, brackets, and what stands behind them.
#include <string>
#include <utility>

#include "text/jinja/expression_parser.h"
#include "text/jinja/filters.h"
#include "text/jinja/is_tests.h"

namespace quire::jinja {

ExpressionParser::Result ExpressionParser::ParsePrimary() {
  const Token& token = state_.current();
  if (token.kind == TokenKind::kName) return ParseName();
  if (token.IsOperator("[")) return ParseList();
  if (token.IsOperator("{")) return ParseDict();
  if (state_.SkipOperator("(")) {
    QUIRE_ASSIGN_OR_RETURN(const Expression* inner, ParseTuple(Choice::kAllowed, true));
    QUIRE_RETURN_IF_ERROR(state_.ExpectOperator(")"));
    return inner;
  }
  Expression* node = New(ExpressionKind::kConstant);
  if (token.kind == TokenKind::kInteger) {
    node->constant = Value(state_.Take().integer);
  } else if (token.kind == TokenKind::kFloat) {
    node->constant = Value(state_.Take().real);
  } else if (token.kind == TokenKind::kString) {
    std::string text;
    while (state_.current().kind == TokenKind::kString) text += state_.Take().text;
    node->constant = Value(MarkedText(std::move(text)));
  } else {
    return state_.Unexpected("an expression");
  }
  return state_.Finish(node);
}

ExpressionParser::Result ExpressionParser::ParseName() {
  Expression* node = New(ExpressionKind::kConstant);
  std::string name = state_.Take().text;
  if (name == "true" || name == "True") {
    node->constant = Value(true);
  } else if (name == "false" || name == "False") {
    node->constant = Value(false);
  } else if (name == "none" || name == "None") {
    node->constant = Value(None{});
  } else {
    if (state_.in_macro && (name == "varargs" || name == "kwargs" || name == "caller")) {
      return Unsupported("line {}: '{}' in a macro is not supported", node->line, name);
    }
    node->kind = ExpressionKind::kName;
    state_.names_read.insert(name);
    node->name = std::move(name);
  }
  return state_.Finish(node);
}

ExpressionParser::Result ExpressionParser::ParseList() {
  Expression* node = New(ExpressionKind::kList);
  QUIRE_RETURN_IF_ERROR(state_.ExpectOperator("["));
  while (!state_.SkipOperator("]")) {
    if (!node->operands.empty()) QUIRE_RETURN_IF_ERROR(state_.ExpectOperator(","));
    if (state_.SkipOperator("]")) break;
    QUIRE_ASSIGN_OR_RETURN(const Expression* item, Parse());
    node->operands.push_back(item);
  }
  return state_.Finish(node);
}

ExpressionParser::Result ExpressionParser::ParseDict() {
  Expression* node = New(ExpressionKind::kDict);
  QUIRE_RETURN_IF_ERROR(state_.ExpectOperator("{"));
  while (!state_.SkipOperator("}")) {
    if (!node->operands.empty()) QUIRE_RETURN_IF_ERROR(state_.ExpectOperator(","));
    if (state_.SkipOperator("}")) break;
    QUIRE_ASSIGN_OR_RETURN(const Expression* key, Parse());
    QUIRE_RETURN_IF_ERROR(state_.ExpectOperator(":"));
    QUIRE_ASSIGN_OR_RETURN(const Expression* value, Parse());
    node->operands.push_back(key);
    node->operands.push_back(value);
  }
  return state_.Finish(node);
}

ExpressionParser::Result ExpressionParser::ParsePostfix(const Expression* node) {
  while (true) {
    if (state_.current().IsOperator(".")) {
      QUIRE_ASSIGN_OR_RETURN(node, ParseAttribute(node));
    } else if (state_.current().IsOperator("[")) {
      QUIRE_ASSIGN_OR_RETURN(node, ParseSubscript(node));
    } else if (state_.current().IsOperator("(")) {
      QUIRE_ASSIGN_OR_RETURN(node, ParseCall(node));
    } else {
      return node;
    }
  }
}

ExpressionParser::Result ExpressionParser::ParseFilters(const Expression* node) {
  while (true) {
    if (state_.current().IsOperator("|")) {
      QUIRE_ASSIGN_OR_RETURN(node, ParseFilter(node));
    } else if (state_.current().IsName("is")) {
      QUIRE_ASSIGN_OR_RETURN(node, ParseTest(node));
    } else if (state_.current().IsOperator("(")) {
      QUIRE_ASSIGN_OR_RETURN(node, ParseCall(node));
    } else {
      return node;
    }
  }
}

ExpressionParser::Result ExpressionParser::ParseAttribute(const Expression* object) {
  Expression* node = New(ExpressionKind::kAttribute);
  state_.Take();
  if (state_.current().kind == TokenKind::kInteger) {  // items.0
    Expression* index = New(ExpressionKind::kConstant);
    index->constant = Value(state_.Take().integer);
    node->kind = ExpressionKind::kSubscript;
    node->operands = {object, index};
    return state_.Finish(node);
  }
  QUIRE_ASSIGN_OR_RETURN(node->name, state_.TakeName());
  node->operands = {object};
  return state_.Finish(node);
}

ExpressionParser::Result ExpressionParser::ParseSubscript(const Expression* object) {
  Expression* node = New(ExpressionKind::kSubscript);
  state_.Take();
  const auto part_ends = [&] {
    return state_.current().IsOperator(":") || state_.current().IsOperator("]");
  };
  const Expression* parts[3] = {nullptr, nullptr, nullptr};  // start, stop, step
  if (!part_ends()) {
    QUIRE_ASSIGN_OR_RETURN(parts[0], Parse());
  }
  if (!state_.current().IsOperator(":")) {
    if (parts[0] == nullptr) return state_.Unexpected("an index");
    node->operands = {object, parts[0]};
  } else {
    for (int part = 1; part < 3 && state_.SkipOperator(":"); ++part) {
      if (part_ends()) continue;
      QUIRE_ASSIGN_OR_RETURN(parts[part], Parse());
    }
    node->kind = ExpressionKind::kSlice;
    node->operands = {object, parts[0], parts[1], parts[2]};
  }
  QUIRE_RETURN_IF_ERROR(state_.ExpectOperator("]"));
  return state_.Finish(node);
}

ExpressionParser::Result ExpressionParser::ParseCall(const Expression* callee) {
  Expression* node = New(ExpressionKind::kCall);
  node->operands = {callee};
  QUIRE_RETURN_IF_ERROR(ParseArguments(node));
  return state_.Finish(node);
}

Status ExpressionParser::ParseArguments(Expression* node) {
  QUIRE_RETURN_IF_ERROR(state_.ExpectOperator("("));
  bool first = true;
  while (!state_.SkipOperator(")")) {
    if (!first) QUIRE_RETURN_IF_ERROR(state_.ExpectOperator(","));
    if (state_.SkipOperator(")")) break;
    first = false;
    if (state_.current().IsOperator("*") || state_.current().IsOperator("**")) {
      return Unsupported("line {}: *args and **kwargs in a call are not supported",
                         state_.current().line);
    }
    if (state_.current().kind == TokenKind::kName && state_.next().IsOperator("=")) {
      std::string name = state_.Take().text;
      state_.Take();
      QUIRE_ASSIGN_OR_RETURN(const Expression* value, Parse());
      node->keywords.emplace_back(std::move(name), value);
    } else {
      if (!node->keywords.empty())
        return state_.Unexpected("name=value: named arguments come last");
      QUIRE_ASSIGN_OR_RETURN(const Expression* value, Parse());
      node->operands.push_back(value);
    }
  }
  return OkStatus();
}

ExpressionParser::Result ExpressionParser::ParseFilter(const Expression* input) {
  Expression* node = New(ExpressionKind::kFilter);
  state_.Take();
  QUIRE_ASSIGN_OR_RETURN(node->name, state_.TakeName());
  if (FindFilter(node->name) == nullptr) {
    return Unsupported("line {}: there is no filter '{}'", node->line, node->name);
  }
  node->operands = {input};
  if (state_.current().IsOperator("(")) QUIRE_RETURN_IF_ERROR(ParseArguments(node));
  return state_.Finish(node);
}

ExpressionParser::Result ExpressionParser::ParseTest(const Expression* input) {
  Expression* node = New(ExpressionKind::kTest);
  state_.Take();
  const bool negated = state_.SkipName("not");
  QUIRE_ASSIGN_OR_RETURN(node->name, state_.TakeName());
  if (FindIsTest(node->name) == nullptr) {
    return Unsupported("line {}: there is no test '{}'", node->line, node->name);
  }
  node->operands = {input};
  const Token& token = state_.current();
  const bool word = token.kind == TokenKind::kName;
  const bool argument =
      (word && !token.IsName("else") && !token.IsName("or") && !token.IsName("and") &&
       !token.IsName("if") && !token.IsName("is") && !token.IsName("in") && !token.IsName("not")) ||
      token.kind == TokenKind::kString || token.kind == TokenKind::kInteger ||
      token.kind == TokenKind::kFloat || token.IsOperator("[") || token.IsOperator("{");
  if (token.IsOperator("(")) {
    QUIRE_RETURN_IF_ERROR(ParseArguments(node));
  } else if (argument) {  // x is divisibleby 3
    QUIRE_ASSIGN_OR_RETURN(const Expression* value, ParsePrimary());
    QUIRE_ASSIGN_OR_RETURN(value, ParsePostfix(value));
    node->operands.push_back(value);
  }
  QUIRE_ASSIGN_OR_RETURN(const Expression* test, state_.Finish(node));
  if (!negated) return test;
  Expression* inverse = New(ExpressionKind::kNot);
  inverse->operands = {test};
  return state_.Finish(inverse);
}

}  // namespace quire::jinja
