// What the two parsers share: the tokens, the tree and the depth of nesting.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/errors.h"
#include "base/status.h"
#include "text/jinja/ast.h"
#include "text/jinja/token.h"

namespace quire::jinja {

// Nested brackets, operators and blocks. One bracket counts three times, so about 130 brackets fit;
// the parsers take about 4 KiB of stack for each of those.
constexpr int kMaxParseDepth = 400;
// Operands below each other, as in a + b + c + ...: bounds what one evaluation recurses.
constexpr int kMaxExpressionHeight = 250;

class ParseState {
 public:
  ParseState(std::vector<Token> tokens, Ast* ast) : ast_(ast), tokens_(std::move(tokens)) {}

  Ast& ast() { return *ast_; }

  const Token& current() const { return tokens_[at_]; }
  const Token& next() const { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }
  // Moves to the next token; stays at the end.
  Token Take() {
    Token token = tokens_[at_];
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
  }
  bool SkipOperator(const char* op) { return Skip(current().IsOperator(op)); }
  bool SkipName(const char* name) { return Skip(current().IsName(name)); }

  Status ExpectOperator(const char* op) {
    if (SkipOperator(op)) return OkStatus();
    return Unexpected(op);
  }
  Status ExpectName(const char* name) {
    if (SkipName(name)) return OkStatus();
    return Unexpected(name);
  }
  StatusOr<std::string> TakeName() {
    if (current().kind != TokenKind::kName) return Unexpected("a name");
    return Take().text;
  }
  Status Expect(TokenKind kind, const char* what) {
    if (current().kind != kind) return Unexpected(what);
    Take();
    return OkStatus();
  }

  // "line 3: need ), there is 'endif'".
  Status Unexpected(std::string_view needed) const {
    const Token& token = current();
    const bool named = !token.text.empty() && token.kind != TokenKind::kData;
    return InvalidFile("line {}: need {}, there is {}", token.line, needed,
                       named ? "'" + token.text + "'" : KindWords(token.kind));
  }

  // Holds one level of nesting; the level is left when it is destroyed.
  class Level {
   public:
    explicit Level(ParseState* state) : state_(state) { ++state_->depth_; }
    ~Level() { --state_->depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    Status Check() const {
      if (state_->depth_ <= kMaxParseDepth) return OkStatus();
      return ResourceExhausted("line {}: brackets, operators or blocks are nested too deep",
                               state_->current().line);
    }

   private:
    ParseState* state_;
  };

  // Sets the height of a finished node and checks it.
  StatusOr<const Expression*> Finish(Expression* node) {
    const auto grow = [node](const Expression* operand) {
      if (operand != nullptr && operand->height >= node->height) node->height = operand->height + 1;
    };
    for (const Expression* operand : node->operands) grow(operand);
    for (const auto& [name, operand] : node->keywords) grow(operand);
    if (node->height <= kMaxExpressionHeight) return node;
    return ResourceExhausted("line {}: an expression has more than {} operators below each other",
                             node->line, kMaxExpressionHeight);
  }

  bool in_macro = false;
  int loop_depth = 0;
  std::set<std::string> names_read;  // every name an expression reads

 private:
  bool Skip(bool matches) {
    if (matches) Take();
    return matches;
  }

  static std::string KindWords(TokenKind kind) {
    switch (kind) {
      case TokenKind::kData:
        return "text outside of a tag";
      case TokenKind::kPrintBegin:
        return "{{";
      case TokenKind::kPrintEnd:
        return "}}";
      case TokenKind::kBlockBegin:
        return "{%";
      case TokenKind::kBlockEnd:
        return "%}";
      case TokenKind::kString:
        return "an empty string";
      default:
        return "the end of the template";
    }
  }

  Ast* ast_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace quire::jinja
