#include "text/jinja/lexer.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "base/errors.h"
#include "text/jinja/string_literal.h"
#include "text/jinja/unicode.h"

namespace quire::jinja {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsNameStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

std::string NormalizeNewlines(std::string_view source) {
  std::string result;
  result.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      result.push_back('\n');
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      result.push_back(source[i]);
    }
  }
  if (!result.empty() && result.back() == '\n') result.pop_back();
  return result;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  StatusOr<std::vector<Token>> Run() {
    while (at_ < source_.size()) QUIRE_RETURN_IF_ERROR(ReadDataAndTag());
    Add(TokenKind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  bool Sees(std::string_view text) const { return source_.substr(at_).starts_with(text); }

  void Advance(size_t count) {
    line_ +=
        static_cast<int>(std::count(source_.begin() + at_, source_.begin() + at_ + count, '\n'));
    at_ += count;
  }
  void SkipSpaceHere() { Advance(SkipSpace(source_, at_) - at_); }
  void SkipOneNewline() {
    if (Sees("\n")) Advance(1);
  }

  Token& Add(TokenKind kind, std::string_view text) {
    Token& token = tokens_.emplace_back();
    token.kind = kind;
    token.text = std::string(text);
    token.line = line_;
    return token;
  }

  Status Error(const char* what) const { return InvalidFile("line {}: {}", line_, what); }

  // The text up to the next tag, and that tag.
  Status ReadDataAndTag() {
    const bool line_start = at_ == 0 || source_[at_ - 1] == '\n';
    size_t tag = source_.find('{', at_);
    while (tag != std::string_view::npos &&
           (tag + 1 >= source_.size() ||
            (source_[tag + 1] != '%' && source_[tag + 1] != '{' && source_[tag + 1] != '#'))) {
      tag = source_.find('{', tag + 1);
    }
    if (tag == std::string_view::npos) {
      AddData(source_.substr(at_));
      Advance(source_.size() - at_);
      return OkStatus();
    }
    const std::string_view data = source_.substr(at_, tag - at_);
    const char kind = source_[tag + 1];
    const char sign = tag + 2 < source_.size() ? source_[tag + 2] : ' ';
    AddData(TrimBeforeTag(data, kind, sign, line_start));
    Advance(tag - at_ + 2);
    if (sign == '-' || sign == '+') Advance(1);
    if (kind == '#') return SkipComment();
    if (kind == '{') return ReadTag(TokenKind::kPrintBegin, TokenKind::kPrintEnd, "}}");
    if (IsRaw()) return ReadRaw();
    return ReadTag(TokenKind::kBlockBegin, TokenKind::kBlockEnd, "%}");
  }

  void AddData(std::string_view data) {
    if (!data.empty()) Add(TokenKind::kData, data);
  }

  static std::string_view TrimBeforeTag(std::string_view data, char kind, char sign,
                                        bool line_start) {
    if (sign == '-') return data.substr(0, TrailingSpaceStart(data, 0));
    if (sign == '+' || kind == '{') return data;
    const size_t newline = data.rfind('\n');
    if (newline == std::string_view::npos && !line_start) return data;
    const size_t line = newline == std::string_view::npos ? 0 : newline + 1;
    return SkipSpace(data, line) == data.size() ? data.substr(0, line) : data;
  }

  Status SkipComment() {
    const size_t end = source_.find("#}", at_);
    if (end == std::string_view::npos) return Error("a comment has no end: write #} behind it");
    const char sign = end > at_ ? source_[end - 1] : ' ';
    Advance(end + 2 - at_);
    EndBlock(sign);
    return OkStatus();
  }

  // Behind the end of a block or comment whose last character was `sign`.
  void EndBlock(char sign) {
    if (sign == '-') {
      SkipSpaceHere();
    } else if (sign != '+') {
      SkipOneNewline();
    }
  }

  // At `name` with white space around it and an end of a block behind: where that end is.
  size_t FindBareTag(size_t at, std::string_view name) const {
    at = SkipSpace(source_, at);
    if (!source_.substr(at).starts_with(name)) return std::string_view::npos;
    at = SkipSpace(source_, at + name.size());
    const std::string_view rest = source_.substr(at);
    return rest.starts_with("%}") || rest.starts_with("-%}") || rest.starts_with("+%}")
               ? at
               : std::string_view::npos;
  }

  bool IsRaw() const { return FindBareTag(at_, "raw") != std::string_view::npos; }

  Status ReadRaw() {
    const size_t end = FindBareTag(at_, "raw");
    const bool strip = source_[end] == '-';
    Advance(source_.find("%}", end) + 2 - at_);
    if (strip) SkipSpaceHere();
    for (size_t tag = source_.find("{%", at_); tag != std::string_view::npos;
         tag = source_.find("{%", tag + 2)) {
      const char sign = tag + 2 < source_.size() ? source_[tag + 2] : ' ';
      const size_t name = tag + (sign == '-' || sign == '+' ? 3 : 2);
      const size_t close = FindBareTag(name, "endraw");
      if (close == std::string_view::npos) continue;
      AddData(TrimBeforeTag(source_.substr(at_, tag - at_), '%', sign, false));
      const char end_sign = source_[close];
      Advance(source_.find("%}", close) + 2 - at_);
      EndBlock(end_sign);
      return OkStatus();
    }
    return Error("a raw block has no end: write {% endraw %} behind it");
  }

  Status ReadTag(TokenKind begin, TokenKind end, std::string_view close) {
    Add(begin, "");
    std::string open_brackets;
    while (true) {
      SkipSpaceHere();
      if (at_ >= source_.size()) return InvalidFile("line {}: a tag has no end: {}", line_, close);
      if (open_brackets.empty() && ReadTagEnd(end, close)) return OkStatus();
      QUIRE_RETURN_IF_ERROR(ReadExpressionToken(&open_brackets));
    }
  }

  bool ReadTagEnd(TokenKind end, std::string_view close) {
    char sign = ' ';
    if (source_[at_] == '-' || (source_[at_] == '+' && end == TokenKind::kBlockEnd)) {
      sign = source_[at_];
    }
    const size_t length = sign == ' ' ? 0 : 1;
    if (!source_.substr(at_ + length).starts_with(close)) return false;
    Advance(length + close.size());
    Add(end, "");
    if (end == TokenKind::kBlockEnd) {
      EndBlock(sign);
    } else if (sign == '-') {
      SkipSpaceHere();
    }
    return true;
  }

  Status ReadExpressionToken(std::string* open_brackets) {
    const char c = source_[at_];
    if (IsDigit(c)) return ReadNumber();
    if (IsNameStart(c)) {
      size_t end = at_;
      while (end < source_.size() && (IsNameStart(source_[end]) || IsDigit(source_[end]))) ++end;
      Add(TokenKind::kName, source_.substr(at_, end - at_));
      Advance(end - at_);
      return OkStatus();
    }
    if (c == '\'' || c == '"') return ReadString(c);
    return ReadOperator(open_brackets);
  }

  Status ReadString(char quote) {
    size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) return Error("a string has no closing quote");
    auto value = UnescapeString(source_.substr(at_ + 1, end - at_ - 1));
    if (!value.ok()) return value.status().WithContext(fmt::format("line {}", line_));
    Add(TokenKind::kString, *value);
    Advance(end + 1 - at_);
    return OkStatus();
  }

  // 12, 1_000, 0x1f, 0o7, 0b1, 1.5, 1e3. A point without a digit behind it is not part of it.
  Status ReadNumber() {
    std::string digits;
    size_t at = at_;
    int base = 10;
    const std::string_view start = source_.substr(at_, 2);
    if (start == "0x" || start == "0X") base = 16;
    if (start == "0o" || start == "0O") base = 8;
    if (start == "0b" || start == "0B") base = 2;
    const auto read_digits = [&] {
      for (; at < source_.size(); ++at) {
        const char c = source_[at];
        const bool hex = base == 16 && ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'));
        if (c == '_') continue;
        if (!IsDigit(c) && !hex) break;
        digits.push_back(c);
      }
    };
    const auto digit_at = [&](size_t i) { return i < source_.size() && IsDigit(source_[i]); };
    if (base != 10) at += 2;
    read_digits();
    bool real = false;
    if (base == 10 && at < source_.size() && source_[at] == '.' && digit_at(at + 1)) {
      real = true;
      digits.push_back(source_[at++]);
      read_digits();
    }
    if (base == 10 && at < source_.size() && (source_[at] == 'e' || source_[at] == 'E')) {
      const bool sign =
          at + 1 < source_.size() && (source_[at + 1] == '+' || source_[at + 1] == '-');
      if (digit_at(at + (sign ? 2 : 1))) {
        real = true;
        digits.append(source_.substr(at, sign ? 2 : 1));
        at += sign ? 2 : 1;
        read_digits();
      }
    }
    Token& token = Add(real ? TokenKind::kFloat : TokenKind::kInteger, digits);
    const char* end = digits.data() + digits.size();
    const auto read = real ? std::from_chars(digits.data(), end, token.real)
                           : std::from_chars(digits.data(), end, token.integer, base);
    if (read.ec != std::errc() || read.ptr != end) {
      return InvalidFile("line {}: the number {} cannot be held", line_,
                         source_.substr(at_, at - at_));
    }
    Advance(at - at_);
    return OkStatus();
  }

  Status ReadOperator(std::string* open_brackets) {
    constexpr std::string_view kTwo[] = {"//", "**", "==", "!=", ">=", "<="};
    constexpr std::string_view kOne = "+-/*%~[](){}><=.:|,;";
    size_t length = 0;
    if (kOne.find(source_[at_]) != std::string_view::npos) length = 1;
    for (std::string_view op : kTwo) {
      if (Sees(op)) length = 2;
    }
    if (length == 0) {
      const size_t bytes = Decode(source_, at_).length;
      return InvalidFile("line {}: '{}' has no meaning in a tag", line_,
                         source_.substr(at_, bytes));
    }
    const char c = source_[at_];
    if (length == 1 && (c == '(' || c == '[' || c == '{')) {
      open_brackets->push_back(c == '(' ? ')' : c == '[' ? ']' : '}');
    } else if (c == ')' || c == ']' || c == '}') {
      if (open_brackets->empty() || open_brackets->back() != c) {
        return InvalidFile("line {}: '{}' closes nothing", line_, c);
      }
      open_brackets->pop_back();
    }
    Add(TokenKind::kOperator, source_.substr(at_, length));
    Advance(length);
    return OkStatus();
  }

  std::string_view source_;
  size_t at_ = 0;
  int line_ = 1;
  std::vector<Token> tokens_;
};

}  // namespace

StatusOr<std::vector<Token>> Tokenize(std::string_view source) {
  const std::string normalized = NormalizeNewlines(source);
  return Lexer(normalized).Run();
}

}  // namespace quire::jinja
