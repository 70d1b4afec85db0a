// The byte that a token's text names: "<0x0A>" is 10.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace quire {

// Nothing for any other text: "<0x-1>", "<0xZZ>", "<0x1>", "<0x100>".
inline std::optional<uint8_t> ByteOfToken(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return std::nullopt;
  int value = 0;
  for (const char c : text.substr(3, 2)) {
    int digit = 0;
    if (c >= '0' && c <= '9') {
      digit = c - '0';
    } else if (c >= 'A' && c <= 'F') {
      digit = c - 'A' + 10;
    } else if (c >= 'a' && c <= 'f') {
      digit = c - 'a' + 10;
    } else {
      return std::nullopt;
    }
    value = value * 16 + digit;
  }
  return static_cast<uint8_t>(value);
}

}  // namespace quire
