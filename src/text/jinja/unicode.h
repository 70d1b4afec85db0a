// Characters of UTF-8 text as Python's str sees them: code points, white space, case.
//
// A byte that is not part of valid UTF-8 counts as one character and is copied as it is.
// text/ has its own, stricter UTF-8 for tokenizers; this one never fails.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace quire::jinja {

// Added to a byte that is not part of valid UTF-8.
constexpr uint32_t kInvalidByte = 0x80000000;

struct CodePoint {
  uint32_t value = 0;  // or kInvalidByte + the byte
  size_t length = 1;   // in bytes
};

// The character that starts at text[at]. Requires: at < text.size().
CodePoint Decode(std::string_view text, size_t at);
// Where the character that ends at `end` starts. Requires: 0 < end <= text.size().
size_t PreviousStart(std::string_view text, size_t end);
// How many characters.
size_t CountCharacters(std::string_view text);
// An invalid byte is appended as it was.
void AppendUtf8(uint32_t code_point, std::string* out);

// str.isspace of one character.
bool IsSpace(uint32_t code_point);
// One past the white space that starts at `at`.
size_t SkipSpace(std::string_view text, size_t at);
// Where the white space at the end starts; at least `begin`.
size_t TrailingSpaceStart(std::string_view text, size_t begin);

// Appends str.upper or str.lower of one character, which may be several. A sigma is lowered to the
// one for the middle of a word, also at its end.
void AppendUpper(uint32_t code_point, std::string* out);
void AppendLower(uint32_t code_point, std::string* out);
bool IsUpper(uint32_t code_point);
bool IsLower(uint32_t code_point);
inline bool IsCased(uint32_t code_point) { return IsUpper(code_point) || IsLower(code_point); }

// False for what Python's repr escapes: control, format, surrogate and private characters, and
// separators other than the space. Unassigned characters count as printable.
bool IsPrintable(uint32_t code_point);

}  // namespace quire::jinja
