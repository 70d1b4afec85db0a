// UTF-8 as tokenizers need it: what is valid, and where.
//
// Invalid bytes are counted as the Unicode Standard advises (section 3.9, "maximal subpart"): the
// longest start of a valid character that its next byte breaks is one error, any other byte one.
//
// text/jinja has a reader of its own, which treats each invalid byte as a character.
#pragma once

#include <cstddef>
#include <string_view>

namespace quire {

struct Utf8Step {
  size_t length = 1;        // bytes of the character, or of the error
  bool valid = false;       // a whole character
  bool incomplete = false;  // the text ends where the character could go on
};

// The character or error that `text` starts with. Requires: text is not empty.
Utf8Step NextUtf8(std::string_view text);

// Bytes of the longest start of `text` that is valid.
size_t ValidUtf8Length(std::string_view text);

// Bytes of the longest start of `text` in which no valid character stands.
size_t InvalidUtf8Length(std::string_view text);

}  // namespace quire
