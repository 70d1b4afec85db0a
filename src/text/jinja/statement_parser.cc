#include "text/jinja/statement_parser.h"

#include <initializer_list>
#include <utility>
#include <vector>

#include "text/jinja/expression_parser.h"
#include "text/jinja/lexer.h"
#include "text/jinja/parse_state.h"

namespace quire::jinja {
namespace {

class StatementParser {
 public:
  explicit StatementParser(ParseState* state) : state_(*state), expressions_(state) {}

  // Statements up to a tag whose name is in `ends`; that name is the current token then. Without
  // `ends`, all of the template.
  Status ParseBody(std::initializer_list<const char*> ends, Body* body) {
    ParseState::Level level(&state_);
    QUIRE_RETURN_IF_ERROR(level.Check());
    while (state_.current().kind != TokenKind::kEnd) {
      if (state_.current().kind == TokenKind::kData) {
        Statement* data = New(StatementKind::kData);
        data->text = MarkedText(state_.Take().text);
        body->push_back(data);
      } else if (state_.current().kind == TokenKind::kPrintBegin) {
        state_.Take();
        Statement* print = New(StatementKind::kPrint);
        QUIRE_ASSIGN_OR_RETURN(print->expression, expressions_.ParseTuple());
        QUIRE_RETURN_IF_ERROR(state_.Expect(TokenKind::kPrintEnd, "}}"));
        body->push_back(print);
      } else {
        QUIRE_RETURN_IF_ERROR(state_.Expect(TokenKind::kBlockBegin, "{%"));
        for (const char* end : ends) {
          if (state_.current().IsName(end)) return OkStatus();
        }
        QUIRE_RETURN_IF_ERROR(ParseStatement(body));
        QUIRE_RETURN_IF_ERROR(EndTag());
      }
    }
    if (ends.size() == 0) return OkStatus();
    return InvalidFile("line {}: need {{% {} %}}, there is the end of the template",
                       state_.current().line, *(ends.end() - 1));
  }

 private:
  Statement* New(StatementKind kind) {
    return state_.ast().NewStatement(kind, state_.current().line);
  }
  Status EndTag() { return state_.Expect(TokenKind::kBlockEnd, "%}"); }

  Status ParseStatement(Body* body) {
    if (state_.SkipName("generation")) {
      QUIRE_RETURN_IF_ERROR(EndTag());
      QUIRE_RETURN_IF_ERROR(ParseBody({"endgeneration"}, body));
      return state_.ExpectName("endgeneration");
    }
    QUIRE_ASSIGN_OR_RETURN(const Statement* statement, ParseNamed());
    body->push_back(statement);
    return OkStatus();
  }

  StatusOr<const Statement*> ParseNamed() {
    if (state_.SkipName("if")) return ParseIf();
    if (state_.SkipName("for")) return ParseFor();
    if (state_.SkipName("set")) return ParseSet();
    if (state_.SkipName("with")) return ParseWith();
    if (state_.SkipName("macro")) return ParseMacro();
    if (state_.SkipName("break")) return ParseJump(StatementKind::kBreak);
    if (state_.SkipName("continue")) return ParseJump(StatementKind::kContinue);
    const Token& token = state_.current();
    for (const char* known : {"include", "import", "from", "extends", "block", "call", "filter",
                              "autoescape", "do", "trans", "debug"}) {
      if (!token.IsName(known)) continue;
      return Unsupported("line {}: {{% {} %}} is not supported", token.line, known);
    }
    return state_.Unexpected("a statement such as if, for or set");
  }

  StatusOr<const Statement*> ParseIf() {
    Statement* node = New(StatementKind::kIf);
    while (true) {
      Branch& branch = node->branches.emplace_back();
      QUIRE_ASSIGN_OR_RETURN(branch.condition,
                             expressions_.ParseTuple(ExpressionParser::Choice::kNotAllowed));
      QUIRE_RETURN_IF_ERROR(EndTag());
      QUIRE_RETURN_IF_ERROR(ParseBody({"elif", "else", "endif"}, &branch.body));
      if (state_.SkipName("elif")) continue;
      if (state_.SkipName("else")) {
        QUIRE_RETURN_IF_ERROR(EndTag());
        QUIRE_RETURN_IF_ERROR(ParseBody({"endif"}, &node->otherwise));
      }
      QUIRE_RETURN_IF_ERROR(state_.ExpectName("endif"));
      return node;
    }
  }

  StatusOr<const Statement*> ParseFor() {
    Statement* node = New(StatementKind::kFor);
    QUIRE_ASSIGN_OR_RETURN(node->target, expressions_.ParseTarget(false));
    QUIRE_RETURN_IF_ERROR(state_.ExpectName("in"));
    QUIRE_ASSIGN_OR_RETURN(node->expression,
                           expressions_.ParseTuple(ExpressionParser::Choice::kNotAllowed));
    if (state_.SkipName("if")) {
      QUIRE_ASSIGN_OR_RETURN(node->condition, expressions_.Parse());
    }
    if (state_.current().IsName("recursive")) {
      return Unsupported("line {}: a recursive loop is not supported", node->line);
    }
    QUIRE_RETURN_IF_ERROR(EndTag());
    ++state_.loop_depth;
    const bool outer_reads_loop = state_.names_read.erase("loop") > 0;
    QUIRE_RETURN_IF_ERROR(ParseBody({"else", "endfor"}, &node->body));
    // An inner loop's use sets this as well: too often is harmless.
    node->uses_loop = state_.names_read.count("loop") > 0;
    if (outer_reads_loop) state_.names_read.insert("loop");
    --state_.loop_depth;
    if (state_.SkipName("else")) {
      QUIRE_RETURN_IF_ERROR(EndTag());
      QUIRE_RETURN_IF_ERROR(ParseBody({"endfor"}, &node->otherwise));
    }
    QUIRE_RETURN_IF_ERROR(state_.ExpectName("endfor"));
    return node;
  }

  StatusOr<const Statement*> ParseSet() {
    Statement* node = New(StatementKind::kSet);
    QUIRE_ASSIGN_OR_RETURN(node->target, expressions_.ParseTarget(true));
    if (state_.SkipOperator("=")) {
      QUIRE_ASSIGN_OR_RETURN(node->expression, expressions_.ParseTuple());
      return node;
    }
    if (state_.current().IsOperator("|")) {
      return Unsupported("line {}: a filter on a set block is not supported", node->line);
    }
    node->kind = StatementKind::kSetBlock;
    QUIRE_RETURN_IF_ERROR(EndTag());
    QUIRE_RETURN_IF_ERROR(ParseBody({"endset"}, &node->body));
    QUIRE_RETURN_IF_ERROR(state_.ExpectName("endset"));
    return node;
  }

  StatusOr<const Statement*> ParseWith() {
    Statement* node = New(StatementKind::kWith);
    while (state_.current().kind != TokenKind::kBlockEnd) {
      if (!node->bindings.empty()) QUIRE_RETURN_IF_ERROR(state_.ExpectOperator(","));
      auto& [target, value] = node->bindings.emplace_back();
      QUIRE_ASSIGN_OR_RETURN(target, expressions_.ParseTarget(false));
      QUIRE_RETURN_IF_ERROR(state_.ExpectOperator("="));
      QUIRE_ASSIGN_OR_RETURN(value, expressions_.Parse());
    }
    QUIRE_RETURN_IF_ERROR(EndTag());
    QUIRE_RETURN_IF_ERROR(ParseBody({"endwith"}, &node->body));
    QUIRE_RETURN_IF_ERROR(state_.ExpectName("endwith"));
    return node;
  }

  StatusOr<const Statement*> ParseMacro() {
    Statement* node = New(StatementKind::kMacro);
    QUIRE_ASSIGN_OR_RETURN(node->name, state_.TakeName());
    QUIRE_RETURN_IF_ERROR(state_.ExpectOperator("("));
    while (!state_.SkipOperator(")")) {
      if (!node->parameters.empty()) QUIRE_RETURN_IF_ERROR(state_.ExpectOperator(","));
      Parameter& parameter = node->parameters.emplace_back();
      QUIRE_ASSIGN_OR_RETURN(parameter.name, state_.TakeName());
      if (state_.SkipOperator("=")) {
        QUIRE_ASSIGN_OR_RETURN(parameter.fallback, expressions_.Parse());
      } else if (node->parameters.size() > 1 && (node->parameters.end() - 2)->fallback != nullptr) {
        return InvalidFile("line {}: '{}' needs a default: the one before it has one", node->line,
                           parameter.name);
      }
    }
    QUIRE_RETURN_IF_ERROR(EndTag());
    const bool outer_macro = std::exchange(state_.in_macro, true);
    const int outer_loops = std::exchange(state_.loop_depth, 0);
    QUIRE_RETURN_IF_ERROR(ParseBody({"endmacro"}, &node->body));
    state_.in_macro = outer_macro;
    state_.loop_depth = outer_loops;
    QUIRE_RETURN_IF_ERROR(state_.ExpectName("endmacro"));
    if (state_.current().kind == TokenKind::kName) state_.Take();  // {% endmacro name %}
    return node;
  }

  StatusOr<const Statement*> ParseJump(StatementKind kind) {
    Statement* node = New(kind);
    if (state_.loop_depth == 0) {
      return InvalidFile("line {}: break and continue stand in a loop only", node->line);
    }
    return node;
  }

  ParseState& state_;
  ExpressionParser expressions_;
};

}  // namespace

StatusOr<ParsedTemplate> ParseTemplate(std::string_view source) {
  QUIRE_ASSIGN_OR_RETURN(std::vector<Token> tokens, Tokenize(source));
  ParsedTemplate result;
  ParseState state(std::move(tokens), &result.ast);
  QUIRE_RETURN_IF_ERROR(StatementParser(&state).ParseBody({}, &result.ast.root));
  result.names_read = std::move(state.names_read);
  return result;
}

}  // namespace quire::jinja
