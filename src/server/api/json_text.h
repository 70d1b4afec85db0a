// JSON written as text, for answers that are sent many times a second: no tree of values is built.
//
// What is written is ASCII only: all else becomes \uXXXX, since clients that cut lines at U+0085,
// U+2028 or U+2029 would cut an event. Bytes that are not UTF-8 become U+FFFD, one for each error
// (text/utf8.h), as in the detokenizer.
//
// What is sent seldom is built as a tree; ToText writes it in the same form. Reading JSON is
// nlohmann's part (api/json_reader.h).
//
// Threading: pure functions. Cost: linear in what is written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace quire {

// `text` as a JSON string, with its quotes.
void AppendJsonString(std::string& json, std::string_view text);
// Without the quotes: to build one string of several parts, each of whole characters.
void AppendJsonCharacters(std::string& json, std::string_view text);

void AppendJsonInteger(std::string& json, int64_t value);
// The shortest digits that give `value` back, always with a point or an exponent. JSON has no
// infinities and no NaN: minus infinity is -9999.0, as OpenAI's servers write it, the others 0.0.
void AppendJsonNumber(std::string& json, double value);
// Milliseconds and the like: three decimals.
void AppendJsonRounded(std::string& json, double value);

// {"a": 1, "b": 2} and [1, 2]: a comma, unless the list or object at the end of `json` is empty.
void AppendJsonComma(std::string& json);

// A tree in one line.
std::string ToText(const nlohmann::ordered_json& json);

// The code points of valid UTF-8.
size_t NumCodePoints(std::string_view text);

}  // namespace quire
