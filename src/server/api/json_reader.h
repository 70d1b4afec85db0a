// ReadJsonObject: the JSON text of a request to one object, under bounds that hold whatever the
// text says: time and memory are O(body), no recursion, at most 64 levels, 1024 keys an object,
// 2^18 lists and objects and 2^22 values (cases SEC-08, API-12).
//
// Refused with 400: text that is not one JSON object in UTF-8, a key twice, a lone surrogate
// ("invalid unicode escape at byte n"), a number beyond a double. `param` is the path of the value
// at fault where there is one ("messages[2].content").
//
// Threading: a pure function. Throws nothing.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string_view>

#include "server/api/api_error.h"

namespace quire {

struct JsonLimits {
  static constexpr size_t kMaxDepth = 64;
  static constexpr size_t kMaxKeys = 1024;
  static constexpr size_t kMaxContainers = size_t{1} << 18;
  static constexpr size_t kMaxValues = size_t{1} << 22;
};

ApiResult<nlohmann::ordered_json> ReadJsonObject(std::string_view body);

}  // namespace quire
