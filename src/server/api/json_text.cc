#include "server/api/json_text.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "text/utf8.h"

namespace quire {
namespace {

constexpr char kHexDigits[] = "0123456789abcdef";
constexpr double kMinusInfinity = -9999.0;

void AppendUnit(std::string& json, uint32_t unit) {
  const std::array<char, 6> escape = {'\\',
                                      'u',
                                      kHexDigits[unit >> 12 & 15],
                                      kHexDigits[unit >> 8 & 15],
                                      kHexDigits[unit >> 4 & 15],
                                      kHexDigits[unit & 15]};
  json.append(escape.data(), escape.size());
}

// `character`: one valid character of UTF-8.
uint32_t CodePointOf(std::string_view character) {
  const auto first = static_cast<uint8_t>(character[0]);
  uint32_t code_point = first;
  if (character.size() == 2) code_point = first & 0x1F;
  if (character.size() == 3) code_point = first & 0x0F;
  if (character.size() == 4) code_point = first & 0x07;
  for (const char byte : character.substr(1))
    code_point = code_point << 6 | (static_cast<uint8_t>(byte) & 0x3F);
  return code_point;
}

void AppendEscapedAscii(std::string& json, char c) {
  switch (c) {
    case '"':
      json += "\\\"";
      return;
    case '\\':
      json += "\\\\";
      return;
    case '\n':
      json += "\\n";
      return;
    case '\r':
      json += "\\r";
      return;
    case '\t':
      json += "\\t";
      return;
    default:
      AppendUnit(json, static_cast<uint8_t>(c));
  }
}

bool IsPlain(char c) {
  const auto byte = static_cast<uint8_t>(c);
  return byte >= 0x20 && byte < 0x7F && c != '"' && c != '\\';
}

template <class T, class... Format>
void AppendChars(std::string& json, T value, Format... format) {
  // The longest fixed notation of a double has 309 digits before its point.
  std::array<char, 352> digits;
  const auto result = std::to_chars(digits.data(), digits.data() + digits.size(), value, format...);
  QUIRE_CHECK(result.ec == std::errc());
  json.append(digits.data(), result.ptr);
}

}  // namespace

void AppendJsonCharacters(std::string& json, std::string_view text) {
  while (!text.empty()) {
    size_t num_plain = 0;
    while (num_plain < text.size() && IsPlain(text[num_plain])) ++num_plain;
    json += text.substr(0, num_plain);
    text.remove_prefix(num_plain);
    if (text.empty()) return;
    if (static_cast<uint8_t>(text[0]) < 0x80) {
      AppendEscapedAscii(json, text[0]);
      text.remove_prefix(1);
      continue;
    }
    const Utf8Step step = NextUtf8(text);
    const uint32_t code_point = step.valid ? CodePointOf(text.substr(0, step.length)) : 0xFFFD;
    if (code_point > 0xFFFF) {
      AppendUnit(json, 0xD800 + ((code_point - 0x10000) >> 10));
      AppendUnit(json, 0xDC00 + ((code_point - 0x10000) & 0x3FF));
    } else {
      AppendUnit(json, code_point);
    }
    text.remove_prefix(step.length);
  }
}

void AppendJsonString(std::string& json, std::string_view text) {
  json += '"';
  AppendJsonCharacters(json, text);
  json += '"';
}

void AppendJsonInteger(std::string& json, int64_t value) { AppendChars(json, value); }

void AppendJsonNumber(std::string& json, double value) {
  if (!std::isfinite(value))
    value = value == -std::numeric_limits<double>::infinity() ? kMinusInfinity : 0;
  const size_t begin = json.size();
  AppendChars(json, value);
  if (json.find_first_of(".e", begin) == std::string::npos) json += ".0";
}

void AppendJsonRounded(std::string& json, double value) {
  AppendChars(json, std::isfinite(value) ? value : 0, std::chars_format::fixed, 3);
}

void AppendJsonComma(std::string& json) {
  if (!json.empty() && json.back() != '[' && json.back() != '{') json += ',';
}

std::string ToText(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace);
}

size_t NumCodePoints(std::string_view text) {
  size_t count = 0;
  for (const char byte : text) count += (static_cast<uint8_t>(byte) & 0xC0) != 0x80;
  return count;
}

}  // namespace quire
