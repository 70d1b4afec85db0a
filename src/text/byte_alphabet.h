// The characters that byte-pair vocabularies write for bytes: printable ones of Latin-1 stand for
// themselves, the 68 others are U+0100 and up, in order (a space is U+0120).
//
// Source: GPT-2, encoder.py, bytes_to_unicode.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "text/utf8.h"

namespace quire {

constexpr bool StandsForItself(int byte) {
  return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
}

// The code point of each byte; all are below U+0800.
constexpr std::array<uint16_t, 256> MakeByteCharacters() {
  std::array<uint16_t, 256> characters{};
  uint16_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    characters[byte] = StandsForItself(byte) ? static_cast<uint16_t>(byte) : next++;
  }
  return characters;
}
inline constexpr std::array<uint16_t, 256> kByteCharacters = MakeByteCharacters();
inline constexpr uint16_t kByteCharactersEnd = 0x100 + 68;

// The byte of each code point below kByteCharactersEnd, or -1.
constexpr std::array<int16_t, kByteCharactersEnd> MakeCharacterBytes() {
  std::array<int16_t, kByteCharactersEnd> bytes{};
  for (int16_t& byte : bytes) byte = -1;
  for (int16_t byte = 0; byte < 256; ++byte) bytes[kByteCharacters[byte]] = byte;
  return bytes;
}
inline constexpr std::array<int16_t, kByteCharactersEnd> kCharacterBytes = MakeCharacterBytes();

// The character of `byte` in UTF-8.
inline std::string ByteCharacter(uint8_t byte) {
  const uint16_t character = kByteCharacters[byte];
  if (character < 0x80) return std::string(1, static_cast<char>(character));
  return {static_cast<char>(0xC0 | character >> 6), static_cast<char>(0x80 | (character & 0x3F))};
}

// The byte that the first character of `text` stands for, or -1 if it stands for none; *length is
// how long it is. What is not UTF-8 stands for no byte. Requires: `text` is not empty.
inline int ByteOfCharacter(std::string_view text, size_t* length) {
  const Utf8Step step = NextUtf8(text);
  *length = step.length;
  if (!step.valid || step.length > 2) return -1;
  const auto first = static_cast<uint8_t>(text[0]);
  const int character = step.length == 1 ? first : (first & 0x1F) << 6 | (text[1] & 0x3F);
  return character < kByteCharactersEnd ? kCharacterBytes[character] : -1;
}

}  // namespace quire
