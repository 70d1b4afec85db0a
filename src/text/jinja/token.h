// The tokens of a template. Made by text/jinja/lexer.h, read by the parsers.
#pragma once

#include <cstdint>
#include <string>

namespace quire::jinja {

enum class TokenKind {
  kData,        // text outside of tags
  kPrintBegin,  // {{
  kPrintEnd,    // }}
  kBlockBegin,  // {%
  kBlockEnd,    // %}
  kName,
  kString,
  kInteger,
  kFloat,
  kOperator,  // + - * / // % ** ~ [ ] ( ) { } == != > >= < <= = . : | , ;
  kEnd,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string text;  // a string's value; the name, data or operator itself
  int64_t integer = 0;
  double real = 0;
  int line = 1;

  bool IsOperator(const char* op) const { return kind == TokenKind::kOperator && text == op; }
  bool IsName(const char* name) const { return kind == TokenKind::kName && text == name; }
};

}  // namespace quire::jinja
