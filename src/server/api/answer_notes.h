// AnswerNotes: what only the server knows of an answer, for its last chunk.
//
// Threading: a plain value.
#pragma once

#include <cstdint>
#include <optional>

namespace quire {

struct AnswerNotes {
  std::optional<int64_t> retained_until = {};  // seconds since 1970
  bool holds_end = false;  // of a stream: the end of the last choice is not to be told yet
};

}  // namespace quire
