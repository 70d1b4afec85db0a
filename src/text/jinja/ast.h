// A parsed template. Made by the parsers, read by the interpreter.
//
// Nodes point at each other; the Ast owns them all in one list, so that a deep tree is destroyed
// without recursion. `height` bounds the recursion over one expression.
//
// Threading: immutable after parsing.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/jinja/value.h"

namespace quire::jinja {

enum class ExpressionKind {
  kConstant,      // constant
  kName,          // name
  kList,          // operands: the items
  kTuple,         // operands: the items; as a target: the targets
  kDict,          // operands: key, value, key, value, ...
  kAttribute,     // operands: object; name
  kSubscript,     // operands: object, index
  kSlice,         // operands: object, start, stop, step (null where not given)
  kCall,          // operands: callee, then arguments; keywords
  kFilter,        // operands: input, then arguments; name; keywords
  kTest,          // operands: input, then arguments; name; keywords
  kNot,           // operands: value
  kNegate,        // operands: value
  kPlus,          // operands: value
  kAnd,           // operands: left, right
  kOr,            // operands: left, right
  kChoice,        // operands: condition, then, else (null where not given)
  kConcat,        // operands: all that is joined by ~
  kArithmetic,    // operands: left, right; operators: one of + - * / // % **
  kCompare,       // operands: first, second, ...; operators between them
  kNamespaceRef,  // name . attribute, as a target only
};

// An operator as it is written; kNotIn is "not in".
enum class Operator {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFloorDivide,
  kModulo,
  kPower,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kIn,
  kNotIn,
};

struct Expression {
  ExpressionKind kind = ExpressionKind::kConstant;
  int line = 1;
  int height = 1;  // 1 + the height of the highest operand
  std::string name;
  std::string attribute;
  Value constant;
  std::vector<const Expression*> operands;
  std::vector<Operator> operators;
  std::vector<std::pair<std::string, const Expression*>> keywords;
};

enum class StatementKind {
  kData,      // text
  kPrint,     // expression
  kIf,        // branches; otherwise
  kFor,       // target, expression (what it runs over), condition or null; body; otherwise
  kSet,       // target, expression
  kSetBlock,  // target, body
  kWith,      // bindings, body
  kMacro,     // name, parameters, body
  kBreak,
  kContinue,
};

struct Statement;
using Body = std::vector<const Statement*>;

struct Branch {
  const Expression* condition = nullptr;
  Body body;
};

struct Parameter {
  std::string name;
  const Expression* fallback = nullptr;  // null: undefined
};

struct Statement {
  StatementKind kind = StatementKind::kData;
  int line = 1;
  MarkedText text;
  std::string name;
  const Expression* expression = nullptr;
  const Expression* target = nullptr;
  const Expression* condition = nullptr;
  bool uses_loop = false;  // kFor: the body names `loop`
  std::vector<Branch> branches;
  std::vector<Parameter> parameters;
  std::vector<std::pair<const Expression*, const Expression*>> bindings;
  Body body;
  Body otherwise;
};

class Ast {
 public:
  Expression* NewExpression(ExpressionKind kind, int line) {
    expressions_.push_back(std::make_unique<Expression>());
    expressions_.back()->kind = kind;
    expressions_.back()->line = line;
    return expressions_.back().get();
  }
  Statement* NewStatement(StatementKind kind, int line) {
    statements_.push_back(std::make_unique<Statement>());
    statements_.back()->kind = kind;
    statements_.back()->line = line;
    return statements_.back().get();
  }

  Body root;

 private:
  std::vector<std::unique_ptr<Expression>> expressions_;
  std::vector<std::unique_ptr<Statement>> statements_;
};

}  // namespace quire::jinja
