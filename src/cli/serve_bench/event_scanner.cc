#include "cli/serve_bench/event_scanner.h"

namespace quire {
namespace {

// The first character of the value of `key` (quoted, without the colon); 0 if there is none.
char ValueStart(std::string_view data, std::string_view key) {
  for (size_t at = data.find(key); at != std::string_view::npos; at = data.find(key, at + 1)) {
    const size_t colon = data.find_first_not_of(" \t", at + key.size());
    if (colon == std::string_view::npos || data[colon] != ':') continue;  // a text, not a key
    const size_t value = data.find_first_not_of(" \t", colon + 1);
    if (value != std::string_view::npos) return data[value];
  }
  return 0;
}

bool HasElements(std::string_view data, std::string_view key) {
  const size_t at = data.find(key);
  if (at == std::string_view::npos) return false;
  const size_t bracket = data.find('[', at + key.size());
  if (bracket == std::string_view::npos) return false;
  const size_t element = data.find_first_not_of(" \t", bracket + 1);
  return element != std::string_view::npos && data[element] != ']';
}

}  // namespace

void EventScanner::Feed(std::string_view piece,
                        const std::function<void(std::string_view data)>& on_data) {
  const auto give = [&](std::string_view line) {
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (line.substr(0, 5) != "data:") return;
    line.remove_prefix(5);
    if (!line.empty() && line.front() == ' ') line.remove_prefix(1);
    on_data(line);
  };
  size_t end = piece.find('\n');
  if (end != std::string_view::npos && !rest_.empty()) {
    rest_ += piece.substr(0, end);
    std::string line;
    line.swap(rest_);
    give(line);
    piece.remove_prefix(end + 1);
    end = piece.find('\n');
  }
  while (end != std::string_view::npos) {
    give(piece.substr(0, end));
    piece.remove_prefix(end + 1);
    end = piece.find('\n');
  }
  rest_ += piece;
}

ChunkKind KindOfChunk(std::string_view data) {
  return {.has_choices = ValueStart(data, "\"choices\"") == '[' && HasElements(data, "\"choices\""),
          .has_usage = ValueStart(data, "\"usage\"") == '{',
          .has_error = ValueStart(data, "\"error\"") == '{'};
}

}  // namespace quire
