#include "text/jinja/interpreter.h"

#include <utility>

#include "text/jinja/access.h"
#include "text/jinja/printing.h"

namespace quire::jinja {

Status Interpreter::Run(const Body& body, Scope* scope, MarkedText* out) {
  return Execute(body, scope, out).status();
}

Status Interpreter::CheckDepth() const {
  if (depth_ <= runtime_.limits().max_depth) return OkStatus();
  return ResourceExhausted("the chat template nests more than {} calls, blocks and operators",
                           runtime_.limits().max_depth);
}

Status Interpreter::AtLine(Status status, int line) {
  if (status.ok() || has_line_ || runtime_.raised()) return status;
  has_line_ = true;
  return status.WithContext(fmt::format("chat template, line {}", line));
}

Status Interpreter::Append(const MarkedText& text, MarkedText* out) {
  QUIRE_RETURN_IF_ERROR(runtime_.SpendBytes(text.cost()));
  QUIRE_RETURN_IF_ERROR(runtime_.CheckTextSize(out->size() + text.size()));
  out->Append(text);
  return OkStatus();
}

StatusOr<Interpreter::Flow> Interpreter::Execute(const Body& body, Scope* scope, MarkedText* out) {
  ++depth_;
  StatusOr<Flow> flow = Flow::kNext;
  if (Status status = CheckDepth(); !status.ok()) flow = status;
  for (size_t i = 0; i < body.size() && flow.ok() && *flow == Flow::kNext; ++i) {
    flow = ExecuteOne(*body[i], scope, out);
    if (!flow.ok()) flow = AtLine(flow.status(), body[i]->line);
  }
  --depth_;
  return flow;
}

StatusOr<Interpreter::Flow> Interpreter::ExecuteOne(const Statement& statement, Scope* scope,
                                                    MarkedText* out) {
  QUIRE_RETURN_IF_ERROR(runtime_.Spend(1));
  switch (statement.kind) {
    case StatementKind::kData:
      QUIRE_RETURN_IF_ERROR(Append(statement.text, out));
      return Flow::kNext;
    case StatementKind::kPrint:
      QUIRE_RETURN_IF_ERROR(Print(statement, scope, out));
      return Flow::kNext;
    case StatementKind::kIf:
      return ExecuteIf(statement, scope, out);
    case StatementKind::kFor:
      return ExecuteFor(statement, scope, out);
    case StatementKind::kWith:
      return ExecuteWith(statement, scope, out);
    case StatementKind::kSet:
      QUIRE_RETURN_IF_ERROR(Set(statement, scope));
      return Flow::kNext;
    case StatementKind::kSetBlock:
      QUIRE_RETURN_IF_ERROR(SetBlock(statement, scope));
      return Flow::kNext;
    case StatementKind::kMacro:
      DefineMacro(statement, scope);
      return Flow::kNext;
    case StatementKind::kBreak:
      return Flow::kBreak;
    case StatementKind::kContinue:
      return Flow::kContinue;
  }
  return Flow::kNext;
}

Status Interpreter::Print(const Statement& statement, Scope* scope, MarkedText* out) {
  QUIRE_ASSIGN_OR_RETURN(const Value value, Evaluate(*statement.expression, scope));
  QUIRE_ASSIGN_OR_RETURN(const TextRef text, ToText(&runtime_, value));
  return Append(*text, out);
}

StatusOr<Interpreter::Flow> Interpreter::ExecuteIf(const Statement& statement, Scope* scope,
                                                   MarkedText* out) {
  for (const Branch& branch : statement.branches) {
    QUIRE_ASSIGN_OR_RETURN(const Value condition, Evaluate(*branch.condition, scope));
    if (IsTrue(condition)) return Execute(branch.body, scope, out);
  }
  return Execute(statement.otherwise, scope, out);
}

StatusOr<std::vector<Value>> Interpreter::LoopItems(const Statement& statement, Scope* scope) {
  QUIRE_ASSIGN_OR_RETURN(const Value over, Evaluate(*statement.expression, scope));
  QUIRE_ASSIGN_OR_RETURN(std::vector<Value> items, Iterate(&runtime_, over));
  if (statement.condition == nullptr) return items;
  std::vector<Value> kept;
  for (Value& item : items) {
    Scope* turn = runtime_.heap().NewScope(scope);
    Status assigned = Assign(*statement.target, item, turn);
    StatusOr<Value> passes = assigned.ok() ? Evaluate(*statement.condition, turn) : assigned;
    runtime_.heap().Release(turn);
    if (!passes.ok()) return passes.status();
    if (IsTrue(*passes)) kept.push_back(std::move(item));
  }
  return kept;
}

StatusOr<Interpreter::Flow> Interpreter::ExecuteFor(const Statement& statement, Scope* scope,
                                                    MarkedText* out) {
  QUIRE_ASSIGN_OR_RETURN(std::vector<Value> items, LoopItems(statement, scope));
  if (items.empty()) return Execute(statement.otherwise, scope, out);
  QUIRE_RETURN_IF_ERROR(runtime_.Spend(4));  // what a loop object and its scope take
  Loop* loop = nullptr;
  if (statement.uses_loop) {
    loop = runtime_.heap().NewLoop();
    loop->items = items;
    loop->depth = loop_depth_ + 1;
  }
  ++loop_depth_;
  StatusOr<Flow> flow = Flow::kNext;
  for (size_t i = 0; i < items.size() && flow.ok() && *flow != Flow::kBreak; ++i) {
    Scope* turn = runtime_.heap().NewScope(scope);
    if (loop != nullptr) {
      loop->index0 = static_cast<int64_t>(i);
      turn->Set("loop", Value(loop));
    }
    Status ready = runtime_.Spend(1);
    if (ready.ok()) ready = Assign(*statement.target, items[i], turn);
    flow = ready.ok() ? Execute(statement.body, turn, out) : StatusOr<Flow>(ready);
    runtime_.heap().Release(turn);
  }
  --loop_depth_;
  if (!flow.ok()) return flow;
  return Flow::kNext;
}

StatusOr<Interpreter::Flow> Interpreter::ExecuteWith(const Statement& statement, Scope* scope,
                                                     MarkedText* out) {
  std::vector<Value> values;
  for (const auto& [target, expression] : statement.bindings) {
    QUIRE_ASSIGN_OR_RETURN(Value value, Evaluate(*expression, scope));
    values.push_back(std::move(value));
  }
  QUIRE_RETURN_IF_ERROR(runtime_.Spend(4));
  Scope* inner = runtime_.heap().NewScope(scope);
  Status ready;
  for (size_t i = 0; i < values.size() && ready.ok(); ++i) {
    ready = Assign(*statement.bindings[i].first, values[i], inner);
  }
  StatusOr<Flow> flow = ready.ok() ? Execute(statement.body, inner, out) : StatusOr<Flow>(ready);
  runtime_.heap().Release(inner);
  return flow;
}

Status Interpreter::Set(const Statement& statement, Scope* scope) {
  QUIRE_ASSIGN_OR_RETURN(const Value value, Evaluate(*statement.expression, scope));
  return Assign(*statement.target, value, scope);
}

Status Interpreter::SetBlock(const Statement& statement, Scope* scope) {
  MarkedText text;
  QUIRE_RETURN_IF_ERROR(runtime_.Spend(4));
  Scope* inner = runtime_.heap().NewScope(scope);
  const StatusOr<Flow> flow = Execute(statement.body, inner, &text);
  runtime_.heap().Release(inner);
  if (!flow.ok()) return flow.status();
  return Assign(*statement.target, Value(std::move(text)), scope);
}

void Interpreter::DefineMacro(const Statement& statement, Scope* scope) {
  Function* function = runtime_.heap().NewFunction();
  function->kind = Function::Kind::kMacro;
  function->name = statement.name;
  function->macro = &statement;
  function->scope = scope;
  for (Scope* kept = scope; kept != nullptr; kept = kept->parent) kept->captured = true;
  scope->Set(statement.name, Value(function));
}

Status Interpreter::Assign(const Expression& target, const Value& value, Scope* scope) {
  if (target.kind == ExpressionKind::kName) {
    scope->Set(target.name, value);
    return OkStatus();
  }
  if (target.kind == ExpressionKind::kNamespaceRef) {
    const Value* space = scope->Find(target.name);
    if (space == nullptr || space->space() == nullptr) {
      return InvalidArgument("'{}' is no namespace: only those have attributes to set",
                             target.name);
    }
    QUIRE_RETURN_IF_ERROR(runtime_.Spend(1));
    space->space()->attributes.Set(target.attribute, value);
    return OkStatus();
  }
  QUIRE_ASSIGN_OR_RETURN(const std::vector<Value> items, Iterate(&runtime_, value));
  if (items.size() != target.operands.size()) {
    return InvalidArgument("{} names to set, but {} values", target.operands.size(), items.size());
  }
  for (size_t i = 0; i < items.size(); ++i) {
    QUIRE_RETURN_IF_ERROR(Assign(*target.operands[i], items[i], scope));
  }
  return OkStatus();
}

}  // namespace quire::jinja
