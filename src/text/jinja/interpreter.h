// Runs a parsed template: statements write text, expressions give values.
//
// Statements are in interpreter.cc, expressions in evaluation.cc.
//
// Errors: kInvalidArgument with the line of the template for what its operations refuse;
// raise_exception's message as it is; kResourceExhausted past the limits.
// Threading: one interpreter, one rendering, one thread. The tree is only read.
#pragma once

#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/jinja/arguments.h"
#include "text/jinja/ast.h"
#include "text/jinja/runtime.h"

namespace quire::jinja {

class Interpreter {
 public:
  explicit Interpreter(Runtime* runtime) : runtime_(*runtime) {}

  // Runs the statements with the names of `scope` and appends their text to `out`.
  Status Run(const Body& body, Scope* scope, MarkedText* out);

 private:
  enum class Flow { kNext, kBreak, kContinue };

  StatusOr<Flow> Execute(const Body& body, Scope* scope, MarkedText* out);
  StatusOr<Flow> ExecuteOne(const Statement& statement, Scope* scope, MarkedText* out);
  StatusOr<Flow> ExecuteIf(const Statement& statement, Scope* scope, MarkedText* out);
  StatusOr<Flow> ExecuteFor(const Statement& statement, Scope* scope, MarkedText* out);
  StatusOr<Flow> ExecuteWith(const Statement& statement, Scope* scope, MarkedText* out);
  // The items of a loop that pass its condition.
  StatusOr<std::vector<Value>> LoopItems(const Statement& statement, Scope* scope);
  Status Print(const Statement& statement, Scope* scope, MarkedText* out);
  Status Set(const Statement& statement, Scope* scope);
  Status SetBlock(const Statement& statement, Scope* scope);
  void DefineMacro(const Statement& statement, Scope* scope);
  Status Assign(const Expression& target, const Value& value, Scope* scope);
  Status Append(const MarkedText& text, MarkedText* out);

  // Checks the depth, then evaluates.
  StatusOr<Value> Evaluate(const Expression& node, Scope* scope);
  StatusOr<Value> EvaluateOne(const Expression& node, Scope* scope);
  StatusOr<Value> EvaluateName(const Expression& node, Scope* scope);
  StatusOr<Value> EvaluateList(const Expression& node, Scope* scope);
  StatusOr<Value> EvaluateDict(const Expression& node, Scope* scope);
  StatusOr<Value> EvaluateAttribute(const Expression& node, Scope* scope);
  StatusOr<Value> EvaluateSubscript(const Expression& node, Scope* scope);
  StatusOr<Value> EvaluateSlice(const Expression& node, Scope* scope);
  StatusOr<Value> EvaluateCall(const Expression& node, Scope* scope);
  StatusOr<Value> EvaluateFilter(const Expression& node, Scope* scope);
  StatusOr<Value> EvaluateTest(const Expression& node, Scope* scope);
  StatusOr<Value> EvaluateUnary(const Expression& node, Scope* scope);
  StatusOr<Value> EvaluateLogic(const Expression& node, Scope* scope);
  StatusOr<Value> EvaluateChoice(const Expression& node, Scope* scope);
  StatusOr<Value> EvaluateConcat(const Expression& node, Scope* scope);
  StatusOr<Value> EvaluateArithmetic(const Expression& node, Scope* scope);
  StatusOr<Value> EvaluateCompare(const Expression& node, Scope* scope);
  // The operands from the second on, and the keywords.
  StatusOr<Arguments> EvaluateArguments(const Expression& node, Scope* scope);
  StatusOr<Value> CallMacro(const Function& function, const Arguments& arguments);

  Status CheckDepth() const;
  // Adds the line, once, unless the template itself raised the error.
  Status AtLine(Status status, int line);

  Runtime& runtime_;
  int depth_ = 0;
  int64_t loop_depth_ = 0;
  bool has_line_ = false;
};

}  // namespace quire::jinja
