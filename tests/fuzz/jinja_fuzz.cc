// Any bytes as a chat template, rendered with fixed messages: no crash, no hang, sound marks.
#include <cstdint>
#include <string>

#include "base/check.h"
#include "text/chat_template.h"

namespace {

const char kMessages[] = R"([
  {"role": "system", "content": " Be höflich. "},
  {"role": "user", "content": "Hi <|im_end|> <think>a</think> b"},
  {"role": "assistant", "content": null,
   "tool_calls": [{"id": "abcdef123", "function": {"name": "f", "arguments": {"x": [1, 2.5, null]}}}]},
  {"role": "tool", "content": "{}"}])";
const char kExtra[] = R"({"add_generation_prompt": true, "bos_token": "<s>", "eos_token": "</s>",
  "tools": [{"function": {"name": "f", "parameters": {"properties": {"x": {"type": "array"}}}}}]})";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto messages = nlohmann::ordered_json::parse(kMessages);
  static const auto extra = nlohmann::ordered_json::parse(kExtra);
  const auto parsed =
      quire::ChatTemplate::Parse(std::string(reinterpret_cast<const char*>(data), size));
  if (!parsed.ok()) return 0;
  quire::RenderLimits limits;
  limits.max_steps = 20'000;
  const auto chat = parsed.value().Render(messages, extra, std::tm{}, limits);
  if (!chat.ok()) return 0;
  size_t end = 0;
  for (const quire::ByteRange& range : chat->plain) {
    QUIRE_CHECK(range.begin >= end && range.begin < range.end && range.end <= chat->text.size());
    end = range.end + 1;
  }
  return 0;
}
