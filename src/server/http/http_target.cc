#include "server/http/http_target.h"

#include <optional>

namespace quire {
namespace {

Status Wrong(const char* what) {
  return {StatusCode::kInvalidArgument, std::string("the request target ") + what};
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Bytes that follow a lead byte in UTF-8, or -1 if it is no lead byte.
int NumFollowing(unsigned char lead) {
  if (lead < 0x80) return 0;
  if (lead >= 0xc2 && lead <= 0xdf) return 1;
  if (lead >= 0xe0 && lead <= 0xef) return 2;
  if (lead >= 0xf0 && lead <= 0xf4) return 3;
  return -1;
}

// No overlong forms, no surrogates, nothing above U+10FFFF.
bool IsUtf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const int following = NumFollowing(lead);
    if (following < 0 || i + following >= text.size()) return false;
    for (int k = 1; k <= following; ++k) {
      const auto byte = static_cast<unsigned char>(text[i + k]);
      const unsigned char low = k > 1 ? 0x80 : lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
      const unsigned char high = k > 1 ? 0xbf : lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
      if (byte < low || byte > high) return false;
    }
    i += following + 1;
  }
  return true;
}

bool HasControlByte(std::string_view text) {
  for (const char c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return true;
  return false;
}

StatusOr<std::string> Decode(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      const int high = i + 1 < text.size() ? HexDigit(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? HexDigit(text[i + 2]) : -1;
      if (high < 0 || low < 0) return Wrong("has a '%' without two hex digits");
      out += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      out += plus_is_space && text[i] == '+' ? ' ' : text[i];
    }
  }
  if (HasControlByte(out)) return Wrong("has a control byte");
  if (!IsUtf8(out)) return Wrong("is not UTF-8");
  return out;
}

// The text up to the next `mark`, which is taken off `rest` with it. Null at the end.
std::optional<std::string_view> NextPart(std::optional<std::string_view>* rest, char mark) {
  if (!rest->has_value()) return std::nullopt;
  const std::string_view all = **rest;
  const size_t at = all.find(mark);
  if (at == std::string_view::npos) {
    rest->reset();
    return all;
  }
  *rest = all.substr(at + 1);
  return all.substr(0, at);
}

}  // namespace

StatusOr<HttpTarget> ParseTarget(std::string_view target) {
  if (target.empty() || target[0] != '/') return Wrong("is not a path");
  for (const char c : target) {
    if (c <= 0x20 || c >= 0x7f) return Wrong("has a byte that is not visible ASCII");
    if (c == '\\' || c == '#') return Wrong("has a '\\' or '#'");
  }
  HttpTarget parsed;
  const size_t question = target.find('?');
  const std::string_view path =
      target.substr(1, question == std::string_view::npos ? std::string_view::npos : question - 1);
  std::optional<std::string_view> rest;
  if (!path.empty()) rest = path;
  while (const auto part = NextPart(&rest, '/')) {
    QUIRE_ASSIGN_OR_RETURN(std::string segment, Decode(*part, false));
    if (segment.empty()) return Wrong("has an empty segment");
    if (segment == "." || segment == "..") return Wrong("has a \".\" or \"..\" segment");
    parsed.segments.push_back(std::move(segment));
  }
  if (question == std::string_view::npos) return parsed;
  rest = target.substr(question + 1);
  while (const auto part = NextPart(&rest, '&')) {
    if (part->empty()) continue;
    const size_t equals = part->find('=');
    QUIRE_ASSIGN_OR_RETURN(std::string name, Decode(part->substr(0, equals), true));
    std::string value;
    if (equals != std::string_view::npos) {
      QUIRE_ASSIGN_OR_RETURN(value, Decode(part->substr(equals + 1), true));
    }
    parsed.query.emplace_back(std::move(name), std::move(value));
  }
  return parsed;
}

}  // namespace quire
