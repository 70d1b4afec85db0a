// NearestName: which name somebody meant who wrote another one.
//
// Threading: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace quire {

// Letters to insert, drop, change or swap with the next one, to get from one to the other.
size_t EditDistance(std::string_view from, std::string_view to);

// The candidate with the least distance, unless none is near: at most 1 + a quarter of the letters.
// Of equals the first.
std::optional<std::string> NearestName(std::string_view name,
                                       const std::vector<std::string>& candidates);

}  // namespace quire
