#include "text/jinja/string_literal.h"

#include <charconv>
#include <cstdint>

#include "base/errors.h"
#include "text/jinja/unicode.h"

namespace quire::jinja {
namespace {

StatusOr<uint32_t> ReadHex(std::string_view literal, size_t at, size_t digits) {
  uint32_t value = 0;
  if (at + digits <= literal.size()) {
    const char* begin = literal.data() + at;
    const auto read = std::from_chars(begin, begin + digits, value, 16);
    if (read.ec == std::errc() && read.ptr == begin + digits && value <= 0x10FFFF) return value;
  }
  return InvalidFile("'\\{}' in a string needs {} hex digits of a character behind it",
                     literal[at - 1], digits);
}

}  // namespace

StatusOr<std::string> UnescapeString(std::string_view literal) {
  std::string result;
  result.reserve(literal.size());
  for (size_t i = 0; i < literal.size(); ++i) {
    if (literal[i] != '\\' || i + 1 >= literal.size()) {
      result.push_back(literal[i]);
      continue;
    }
    const char c = literal[++i];
    constexpr std::string_view kLetters = "\\'\"abfnrtv";
    constexpr std::string_view kMeanings = "\\'\"\a\b\f\n\r\t\v";
    if (const size_t known = kLetters.find(c); known != std::string_view::npos) {
      result.push_back(kMeanings[known]);
    } else if (c == '\n') {
      // A line goes on.
    } else if (c == 'x' || c == 'u' || c == 'U') {
      const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : 8;
      QUIRE_ASSIGN_OR_RETURN(const uint32_t value, ReadHex(literal, i + 1, digits));
      AppendUtf8(value, &result);
      i += digits;
    } else if (c == 'N') {
      return Unsupported("\\N{{name}} in a string: write the character itself or \\u");
    } else if (c >= '0' && c <= '7') {
      uint32_t value = 0;
      size_t end = i;
      for (; end < literal.size() && end < i + 3 && literal[end] >= '0' && literal[end] <= '7';
           ++end) {
        value = value * 8 + static_cast<uint32_t>(literal[end] - '0');
      }
      AppendUtf8(value, &result);
      i = end - 1;
    } else {
      result.push_back('\\');
      result.push_back(c);
    }
  }
  return result;
}

}  // namespace quire::jinja
