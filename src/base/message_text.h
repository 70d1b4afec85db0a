// How numbers and outside strings appear in messages for people.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace quire {

// 1054432 becomes "1,054,432".
inline std::string GroupDigits(uint64_t number) {
  std::string text = std::to_string(number);
  for (size_t place = text.size(); place > 3; place -= 3) text.insert(place - 3, 1, ',');
  return text;
}

// A string of a file or a client, safe to print on one line of a terminal: bytes outside
// printable ASCII become \xNN, and what goes beyond `max_bytes` becomes "...".
inline std::string Printable(std::string_view text, size_t max_bytes = 96) {
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string shown;
  for (const char c : text.substr(0, max_bytes)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7F) {
      shown += c;
    } else {
      shown += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  if (text.size() > max_bytes) shown += "...";
  return shown;
}

}  // namespace quire
