// Fields of the small JSON bodies under /quire/v1. Rules as for all bodies (api/call_reader.h):
// null means absent, an integer may be written 16.0; a wrong type or range is an error with
// `param`. But a field that nobody knows is refused: these bodies are ours, no client sends more.
//
// Threading: pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "server/api/api_error.h"

namespace quire {

// The field, or nothing if it is absent.
ApiResult<std::optional<bool>> ReadBool(const nlohmann::ordered_json& object, const char* name);
ApiResult<std::optional<uint32_t>> ReadCount(const nlohmann::ordered_json& object, const char* name,
                                             uint32_t least, uint32_t most);
// 400 for the first field that `is_known` does not name.
std::optional<ApiError> RefuseUnknown(const nlohmann::ordered_json& object,
                                      const std::function<bool(std::string_view)>& is_known);
// Of at most `most` bytes, without control characters.
ApiResult<std::optional<std::string>> ReadText(const nlohmann::ordered_json& object,
                                               const char* name, size_t most);

}  // namespace quire
