// What Python's str methods do, on texts with marks. Filters and methods share these.
//
// Errors: kResourceExhausted past the limits; kInvalidArgument for an empty separator.
// Threading: as Value.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "text/jinja/runtime.h"

namespace quire::jinja {

enum class Side { kLeft, kRight, kBoth };

// Without `characters` (null), white space goes; else every character of it.
StatusOr<Value> Strip(Runtime* runtime, const MarkedText& text, const MarkedText* characters,
                      Side side);

// `separator` null: at runs of white space. At most `most` cuts unless it is negative, from the
// left or the right.
StatusOr<Value> Split(Runtime* runtime, const MarkedText& text, const MarkedText* separator,
                      int64_t most, Side from);
// str.splitlines() without the line ends.
StatusOr<Value> SplitLines(Runtime* runtime, const MarkedText& text);

// At most `most` replacements unless it is negative.
StatusOr<Value> Replace(Runtime* runtime, const MarkedText& text, const MarkedText& old_part,
                        const MarkedText& new_part, int64_t most);

// The items as texts, with the separator between them.
StatusOr<Value> Join(Runtime* runtime, const std::vector<Value>& items,
                     const MarkedText& separator);

enum class CaseChange {
  kUpper,
  kLower,
  kCapitalize,   // the first character upper, the others lower
  kTitle,        // as kCapitalize in each word; a word follows white space or one of -([{<
  kTitleMethod,  // as kCapitalize in each word; a word follows anything that has no case
};
StatusOr<Value> ChangeCase(Runtime* runtime, const MarkedText& text, CaseChange change);

}  // namespace quire::jinja
