// AnswerNotes: what only the server knows of an answer, for usage and the last chunk.
//
// Threading: a plain value.
#pragma once

#include <cstdint>
#include <optional>

namespace quire {

struct AnswerNotes {
  uint32_t cache_write_tokens = 0;
  std::optional<int64_t> retained_until = {};
};

}  // namespace quire
