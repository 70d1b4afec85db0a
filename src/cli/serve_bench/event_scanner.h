// EventScanner: cuts a stream of server-sent events into its data lines, whichever way the bytes
// come in pieces.
//
// Only what the OpenAI streams use: lines that begin "data:". Comments and other fields are passed
// over; lines may end in LF or CR LF.
//
// Threading: plain values.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace quire {

class EventScanner {
 public:
  // Gives each whole line's data to `on_data`, without the field's name and the space after it. The
  // view lives until it returns.
  void Feed(std::string_view piece, const std::function<void(std::string_view data)>& on_data);

 private:
  std::string rest_;  // of a line whose end has not come
};

// What the client must know of a chunk of /v1/completions or /v1/chat/completions. Found by its
// keys, not parsed: a quoted text can't hold an unescaped quote, so it can't hold a key.
struct ChunkKind {
  bool has_choices = false;  // at least one
  bool has_usage = false;    // an object
  bool has_error = false;
};
ChunkKind KindOfChunk(std::string_view data);

}  // namespace quire
