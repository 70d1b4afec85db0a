#include "text/jinja/unicode.h"

#include <algorithm>
#include <iterator>

namespace quire::jinja {
namespace {

struct CaseRow {
  uint32_t first, last, step;
  int32_t delta;
};

struct SpecialCase {
  uint32_t code_point;
  const char* utf8;
};

#include "text/jinja/unicode_case.inc"

bool IsContinuation(std::string_view text, size_t at) {
  return at < text.size() && (static_cast<uint8_t>(text[at]) & 0xC0) == 0x80;
}

template <size_t kRows>
uint32_t MapSimple(const CaseRow (&rows)[kRows], uint32_t c) {
  const CaseRow* row = std::partition_point(std::begin(rows), std::end(rows),
                                            [&](const CaseRow& r) { return r.last < c; });
  if (row == std::end(rows) || c < row->first || (c - row->first) % row->step != 0) return c;
  return static_cast<uint32_t>(static_cast<int64_t>(c) + row->delta);
}

template <size_t kRows>
const SpecialCase* FindSpecial(const SpecialCase (&rows)[kRows], uint32_t c) {
  const SpecialCase* row = std::lower_bound(
      std::begin(rows), std::end(rows), c,
      [](const SpecialCase& r, uint32_t code_point) { return r.code_point < code_point; });
  return row != std::end(rows) && row->code_point == c ? row : nullptr;
}

}  // namespace

CodePoint Decode(std::string_view text, size_t at) {
  const uint8_t lead = static_cast<uint8_t>(text[at]);
  if (lead < 0x80) return {lead, 1};
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4) return {kInvalidByte + lead, 1};
  uint32_t value = lead & (0x7F >> length);
  for (size_t i = 1; i < length; ++i) {
    if (!IsContinuation(text, at + i)) return {kInvalidByte + lead, 1};
    value = value << 6 | (static_cast<uint8_t>(text[at + i]) & 0x3F);
  }
  const uint32_t smallest = length == 4 ? 0x10000 : length == 3 ? 0x800 : 0x80;
  if (value < smallest || value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) {
    return {kInvalidByte + lead, 1};
  }
  return {value, length};
}

size_t PreviousStart(std::string_view text, size_t end) {
  // The longest first: the last byte of a character alone is one invalid byte.
  for (size_t length = std::min<size_t>(4, end); length > 1; --length) {
    if (Decode(text, end - length).length == length) return end - length;
  }
  return end - 1;
}

size_t CountCharacters(std::string_view text) {
  size_t count = 0;
  for (size_t at = 0; at < text.size(); ++count) at += Decode(text, at).length;
  return count;
}

void AppendUtf8(uint32_t c, std::string* out) {
  if (c < 0x80 || c >= kInvalidByte) {
    out->push_back(static_cast<char>(c));
  } else if (c < 0x800) {
    out->push_back(static_cast<char>(0xC0 | c >> 6));
    out->push_back(static_cast<char>(0x80 | (c & 0x3F)));
  } else if (c < 0x10000) {
    out->push_back(static_cast<char>(0xE0 | c >> 12));
    out->push_back(static_cast<char>(0x80 | (c >> 6 & 0x3F)));
    out->push_back(static_cast<char>(0x80 | (c & 0x3F)));
  } else {
    out->push_back(static_cast<char>(0xF0 | c >> 18));
    out->push_back(static_cast<char>(0x80 | (c >> 12 & 0x3F)));
    out->push_back(static_cast<char>(0x80 | (c >> 6 & 0x3F)));
    out->push_back(static_cast<char>(0x80 | (c & 0x3F)));
  }
}

bool IsSpace(uint32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

size_t SkipSpace(std::string_view text, size_t at) {
  while (at < text.size()) {
    const CodePoint c = Decode(text, at);
    if (!IsSpace(c.value)) break;
    at += c.length;
  }
  return at;
}

size_t TrailingSpaceStart(std::string_view text, size_t begin) {
  size_t end = text.size();
  while (end > begin) {
    const size_t start = PreviousStart(text, end);
    if (!IsSpace(Decode(text, start).value)) break;
    end = start;
  }
  return end;
}

void AppendUpper(uint32_t c, std::string* out) {
  if (c < 0x80) {
    out->push_back(static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c));
  } else if (const SpecialCase* special = FindSpecial(kSpecialUpper, c)) {
    out->append(special->utf8);
  } else {
    AppendUtf8(MapSimple(kUpper, c), out);
  }
}

void AppendLower(uint32_t c, std::string* out) {
  if (c < 0x80) {
    out->push_back(static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c));
  } else if (const SpecialCase* special = FindSpecial(kSpecialLower, c)) {
    out->append(special->utf8);
  } else {
    AppendUtf8(MapSimple(kLower, c), out);
  }
}

bool IsUpper(uint32_t c) {
  if (c < 0x80) return c >= 'A' && c <= 'Z';
  return MapSimple(kLower, c) != c || FindSpecial(kSpecialLower, c) != nullptr;
}

bool IsLower(uint32_t c) {
  if (c < 0x80) return c >= 'a' && c <= 'z';
  return MapSimple(kUpper, c) != c || FindSpecial(kSpecialUpper, c) != nullptr;
}

bool IsPrintable(uint32_t c) {
  if (c < 0x20 || (c >= 0x7F && c <= 0xA0) || c == 0xAD) return false;
  if (c == ' ') return true;
  if (IsSpace(c)) return false;
  if ((c >= 0x200B && c <= 0x200F) || (c >= 0x202A && c <= 0x202E)) return false;
  if ((c >= 0x2060 && c <= 0x206F) || c == 0xFEFF || (c >= 0xFFF0 && c <= 0xFFFB)) return false;
  return !((c >= 0xD800 && c <= 0xF8FF) || c >= 0xE0000);
}

}  // namespace quire::jinja
