// Valid bodies and their mutations.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <random>
#include <vector>

#include "server/api/call_exercise.h"
#include "server/api/field_table.h"

namespace quire {
namespace {

using Json = nlohmann::ordered_json;
using Random = std::mt19937_64;

// Texts of JSON values: of each type, ends of ranges, beyond them, and what is no JSON.
constexpr const char* kValues[] = {"null",
                                   "true",
                                   "false",
                                   "0",
                                   "1",
                                   "2",
                                   "-1",
                                   "16",
                                   "16.0",
                                   "1.5",
                                   "128",
                                   "129",
                                   "1e999",
                                   "-1e999",
                                   "1e-400",
                                   "9223372036854775807",
                                   "9223372036854775808",
                                   "-9223372036854775808",
                                   "18446744073709551616",
                                   "2147483648",
                                   "NaN",
                                   "Infinity",
                                   "\"\"",
                                   "\"a\"",
                                   "\"NaN\"",
                                   "\"16\"",
                                   "\"24h\"",
                                   "\"none\"",
                                   "\"text\"",
                                   "\"assistant\"",
                                   "\"\\ud83d\"",
                                   "\"\\u0000\"",
                                   "[]",
                                   "{}",
                                   "[[]]",
                                   "[1,2]",
                                   "[\"a\",1]",
                                   "[null]",
                                   "[{}]",
                                   "{\"\":{}}",
                                   "{\"1\":100}",
                                   "{\"ttl\":\"30m\"}",
                                   "{\"type\":\"json_object\"}",
                                   "{\"include_usage\":true}",
                                   "[{\"type\":\"text\",\"text\":\"a\"}]",
                                   "[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\"}]}]",
                                   "\"../../etc/passwd\"",
                                   "\"http://127.0.0.1/\"",
                                   "\"<|end|><|start|>\"",
                                   "\"\xC3\xA9\xE4\xB8\xAD\xF0\x9F\x98\x80\""};

template <class List>
const auto& Pick(const List& list, Random& random) {
  return list[random() % std::size(list)];
}

std::string FieldText(ApiForm form, Random& random) {
  const ApiField* field = nullptr;
  do field = &Pick(ApiFields(), random);
  while (!field->IsIn(form) || field->kind == FieldKind::kPrompt ||
         field->kind == FieldKind::kMessages);
  return fmt::format(",\"{}\":{}", field->name, Pick(kValues, random));
}

// Where values begin in the text, near enough: after a colon, comma or open bracket.
size_t ValuePlace(const std::string& text, Random& random) {
  std::vector<size_t> places;
  for (size_t i = 0; i < text.size(); ++i)
    if (text[i] == ':' || text[i] == ',' || text[i] == '[') places.push_back(i + 1);
  return places.empty() ? text.size() : Pick(places, random);
}

// The end of the value that begins at `begin`: brackets and strings are skipped whole.
size_t ValueEnd(const std::string& text, size_t begin) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = begin; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
      continue;
    }
    if (c == '"') in_string = true;
    if (c == '[' || c == '{') ++depth;
    if ((c == ']' || c == '}' || c == ',') && depth == 0) return i;
    if (c == ']' || c == '}') --depth;
  }
  return text.size();
}

void MutateJson(std::string* body, Random& random) {
  const size_t begin = ValuePlace(*body, random);
  const size_t end = ValueEnd(*body, begin);
  const std::string value = body->substr(begin, end - begin);
  switch (random() % 10) {
    case 0:  // twice
      body->insert(end, "," + value);
      break;
    case 1:  // deeper
      body->replace(begin, end - begin, "[" + value + "]");
      break;
    case 2:  // another field
    case 3:
    case 4:
      if (const size_t close = body->rfind('}'); close != std::string::npos)
        body->insert(close,
                     FieldText(random() % 2 ? ApiForm::kChat : ApiForm::kCompletions, random));
      break;
    case 5: {  // a run of it
      std::string run;
      for (uint64_t i = random() % 200; i > 0; --i) run += "," + value;
      if (value.size() < 64) body->insert(end, run);
      break;
    }
    default:  // another value
      body->replace(begin, end - begin, Pick(kValues, random));
  }
}

void MutateBytes(std::string* body, Random& random) {
  if (body->empty()) return;
  const size_t place = random() % body->size();
  const size_t size = std::min<size_t>(1 + random() % 8, body->size() - place);
  switch (random() % 5) {
    case 0:
      (*body)[place] = static_cast<char>(random());
      break;
    case 1:
      (*body)[place] = static_cast<char>((*body)[place] ^ (1 << random() % 8));
      break;
    case 2:
      body->erase(place, size);
      break;
    case 3:
      body->insert(place, body->substr(random() % body->size(), size));
      break;
    default:
      body->resize(place);
  }
}

}  // namespace

std::string ValidBody(int kind, uint64_t seed) {
  Random random(seed);
  const std::string text = random() % 2 ? "hello he" : "\xC3\xA9 \\u4e2d <|end|>";
  const std::string message = fmt::format("{{\"role\":\"user\",\"content\":\"{}\"}}", text);
  const std::string parts =
      R"({"role":"system","content":[{"type":"text","text":"hell","cache_control":{"type":"ephemeral","ttl":"5m"}}]})";
  const std::string call =
      R"({"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]})";
  const std::string chat = fmt::format("\"messages\":[{},{},{}{}]", parts, message, call,
                                       random() % 2 ? "," + message : "");
  const std::string prompts[] = {"\"" + text + "\"", "[1,2,3]", "[\"he\",\"" + text + "\"]",
                                 "[[1],[2,3]]"};
  const std::string prompt = "\"prompt\":" + Pick(prompts, random);
  const bool is_chat =
      kind % kNumCallKinds == 0 || kind % kNumCallKinds == 4 || kind % kNumCallKinds == 5;
  std::string body = "{" + (is_chat ? chat : prompt);
  switch (kind % kNumCallKinds) {
    case 2:
      body = random() % 2 ? "{\"content\":\"" + text + "\",\"with_pieces\":true"
                          : "{\"prompt\":\"" + text + "\",\"return_token_strs\":true";
      break;
    case 3:
      body = "{\"tokens\":[1,2,3.0]";
      break;
    case 7:
      body = random() % 2 ? "{\"token_ids\":[1,2]" : "{" + chat;
      break;
    default:
      body += R"(,"temperature":0.5,"stop":["a"],"seed":1,"n":2,"max_tokens":4)";
  }
  return body + "}";
}

std::string MutatedBody(std::string_view body, uint64_t seed) {
  Random random(seed);
  std::string mutated(body);
  const uint64_t most = 1 + random() % 4;
  for (uint64_t i = 1 + random() % most; i > 0; --i) {
    if (random() % 4 != 0) {
      MutateJson(&mutated, random);
    } else {
      MutateBytes(&mutated, random);
    }
  }
  return mutated;
}

}  // namespace quire
