#include "text/utf8.h"

#include <cstdint>
#include <cstring>

namespace quire {

Utf8Step NextUtf8(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return {.length = 1, .valid = true};

  // Table 3-7 of the Unicode Standard: only the second byte's range depends on the first.
  size_t length = 0;
  uint8_t low = 0x80, high = 0xBF;
  if (first >= 0xC2 && first <= 0xDF) {
    length = 2;
  } else if (first >= 0xE0 && first <= 0xEF) {
    length = 3;
    if (first == 0xE0) low = 0xA0;
    if (first == 0xED) high = 0x9F;
  } else if (first >= 0xF0 && first <= 0xF4) {
    length = 4;
    if (first == 0xF0) low = 0x90;
    if (first == 0xF4) high = 0x8F;
  } else {
    return {.length = 1};
  }
  for (size_t i = 1; i < length; ++i) {
    if (i == text.size()) return {.length = i, .incomplete = true};
    if (byte(i) < low || byte(i) > high) return {.length = i};
    low = 0x80;
    high = 0xBF;
  }
  return {.length = length, .valid = true};
}

size_t ValidUtf8Length(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    uint64_t eight;
    if (at + sizeof(eight) <= text.size()) {
      std::memcpy(&eight, text.data() + at, sizeof(eight));
      if ((eight & 0x8080808080808080) == 0) {
        at += sizeof(eight);
        continue;
      }
    }
    const Utf8Step step = NextUtf8(text.substr(at));
    if (!step.valid) return at;
    at += step.length;
  }
  return at;
}

size_t InvalidUtf8Length(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const Utf8Step step = NextUtf8(text.substr(at));
    if (step.valid) return at;
    at += step.length;
  }
  return at;
}

}  // namespace quire
