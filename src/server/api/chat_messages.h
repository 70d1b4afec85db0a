// `messages` of a chat body: checked, and in the form that chat templates take.
//
// Content is one text (parts are joined by newlines) or null; `developer` is `system`;
// `reasoning` is `reasoning_content`. Images, audio and files are refused; nothing is fetched
// (case SEC-13).
//
// Threading: pure functions.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/api_error.h"

namespace quire {

// A content part with prompt_cache_breakpoint or cache_control: the prompt up to its end is to be
// kept.
struct CacheMark {
  size_t message = 0;
  std::string content;            // of that message, up to the end of the part
  std::optional<uint32_t> ttl_s;  // nothing: the default
};

struct ChatMessages {
  static constexpr size_t kMaxMarks = 4;

  nlohmann::ordered_json messages = nlohmann::ordered_json::array();
  std::vector<CacheMark> marks;
  std::vector<std::string> ignored;  // "messages[].field", each once
};

// `list` is a list of 1 to 10,000 objects, or is refused.
ApiResult<ChatMessages> ReadMessages(const nlohmann::ordered_json& list);

// "90s", "30m", "12h", "1d": seconds, 1 to 30 days; nothing for another text.
std::optional<uint32_t> SecondsOf(std::string_view text);
// `ttl` of a cache field at `path`: nothing if it has none.
ApiResult<std::optional<uint32_t>> ReadTtl(const nlohmann::ordered_json& object,
                                           const std::string& path);

}  // namespace quire
