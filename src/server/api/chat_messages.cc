#include "server/api/chat_messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/message_text.h"
#include "server/api/call_fields.h"

namespace quire {
namespace {

using Json = nlohmann::ordered_json;
using Refusal = std::optional<ApiError>;

constexpr std::string_view kRoles[] = {"system", "developer", "user", "assistant", "tool"};
// Of a message; others are ignored and named.
constexpr std::string_view kKnown[] = {"role",       "content",       "name",
                                       "tool_calls", "tool_call_id",  "reasoning_content",
                                       "reasoning",  "function_call", "audio"};

Refusal Wrong(const std::string& path, const Json* value, std::string_view need) {
  if (value == nullptr)
    return InvalidValue(path, fmt::format("{} is missing: need {}.", path, need));
  return InvalidValue(path, fmt::format("{} is {}: need {}.", path, Shown(*value), need));
}

class MessageReader {
 public:
  explicit MessageReader(ChatMessages* result) : result_(*result) {}

  Refusal Read(const Json& message, size_t index) {
    path_ = fmt::format("messages[{}]", index);
    index_ = index;
    if (!message.is_object()) return Wrong(path_, &message, "an object");
    message_ = &message;
    out_ = Json::object();
    if (Refusal refusal = ReadRole()) return refusal;
    if (Refusal refusal = ReadContent()) return refusal;
    if (Refusal refusal = ReadTexts()) return refusal;
    if (Refusal refusal = ReadToolCalls()) return refusal;
    NameIgnored();
    result_.messages.push_back(std::move(out_));
    return {};
  }

 private:
  std::string Path(std::string_view name) const { return fmt::format("{}.{}", path_, name); }

  Refusal ReadRole() {
    constexpr char kNeed[] = "system, developer, user, assistant or tool";
    const Json* role = Member(*message_, "role");
    if (role == nullptr || !role->is_string()) return Wrong(Path("role"), role, kNeed);
    role_ = role->get_ref<const std::string&>();
    if (std::find(std::begin(kRoles), std::end(kRoles), role_) == std::end(kRoles))
      return Wrong(Path("role"), role, kNeed);
    if (role_ == "developer") role_ = "system";
    out_["role"] = role_;
    return {};
  }

  Refusal ReadContent() {
    const Json* content = Member(*message_, "content");
    if (content == nullptr) {
      if (role_ != "assistant") return Wrong(Path("content"), content, "a text");
      out_["content"] = nullptr;
      if (Member(*message_, "tool_calls") == nullptr) out_["content"] = "";
      return {};
    }
    if (content->is_string()) {
      out_["content"] = *content;
      return {};
    }
    if (!content->is_array()) return Wrong(Path("content"), content, "a text or a list of parts");
    std::string text;
    for (size_t i = 0; i < content->size(); ++i) {
      if (i > 0) text += '\n';
      const std::string path = fmt::format("{}.content[{}]", path_, i);
      if (Refusal refusal = ReadPart((*content)[i], path, &text)) return refusal;
    }
    out_["content"] = std::move(text);
    return {};
  }

  Refusal ReadPart(const Json& part, const std::string& path, std::string* text) {
    if (part.is_string()) {
      *text += part.get_ref<const std::string&>();
      return {};
    }
    if (!part.is_object()) return Wrong(path, &part, "an object with type and text");
    const Json* type = Member(part, "type");
    if (type == nullptr || !type->is_string()) return Wrong(path + ".type", type, "\"text\"");
    if (*type != "text")
      return ApiError{
          .code = "unsupported_content",
          .message = fmt::format("{}.type is {}: this model takes text only.", path, Shown(*type)),
          .param = path + ".type"};
    const Json* words = Member(part, "text");
    if (words == nullptr || !words->is_string()) return Wrong(path + ".text", words, "a string");
    *text += words->get_ref<const std::string&>();
    for (const std::string_view name : {"prompt_cache_breakpoint", "cache_control"})
      if (const Json* mark = Member(part, name))
        if (Refusal refusal = ReadMark(*mark, fmt::format("{}.{}", path, name), *text))
          return refusal;
    return {};
  }

  Refusal ReadMark(const Json& mark, const std::string& path, const std::string& text) {
    if (!mark.is_object()) return Wrong(path, &mark, "an object");
    const bool is_control = path.ends_with("cache_control");
    const char* key = is_control ? "type" : "mode";
    const std::string_view value = is_control ? "ephemeral" : "explicit";
    const Json* kind = Member(mark, key);
    if (kind != nullptr && *kind != value)
      return Wrong(fmt::format("{}.{}", path, key), kind, fmt::format("\"{}\"", value));
    ApiResult<std::optional<uint32_t>> ttl = ReadTtl(mark, path);
    if (!ttl.ok()) return ttl.error();
    if (result_.marks.size() >= ChatMessages::kMaxMarks)
      return InvalidValue(
          path, fmt::format("More than {} cache marks: remove some.", ChatMessages::kMaxMarks));
    result_.marks.push_back({.message = index_, .content = text, .ttl_s = ttl.value()});
    return {};
  }

  // name, tool_call_id, reasoning_content or reasoning.
  Refusal ReadTexts() {
    for (const std::string_view name : {"name", "tool_call_id", "reasoning_content", "reasoning"}) {
      const Json* value = Member(*message_, name);
      if (value == nullptr) continue;
      if (!value->is_string()) return Wrong(Path(name), value, "a string");
      const std::string_view key = name == "reasoning" ? "reasoning_content" : name;
      if (out_.contains(key) && out_[std::string(key)] != *value)
        return InvalidValue(Path(name), fmt::format("{} and {} are one field and differ: send one "
                                                    "of them.",
                                                    name, key));
      out_[std::string(key)] = *value;
    }
    for (const std::string_view name : {"function_call", "audio"})
      if (Member(*message_, name) != nullptr)
        return UnsupportedParameter(Path(name), fmt::format("{} is not supported: send tool_calls "
                                                            "and text.",
                                                            Path(name)));
    return {};
  }

  Refusal ReadToolCalls() {
    const Json* calls = Member(*message_, "tool_calls");
    if (calls == nullptr) return {};
    if (!calls->is_array()) return Wrong(Path("tool_calls"), calls, "a list");
    if (calls->empty()) return {};
    if (role_ != "assistant")
      return InvalidValue(Path("tool_calls"), "tool_calls stand in an assistant's message only.");
    for (size_t i = 0; i < calls->size(); ++i) {
      const std::string path = fmt::format("{}.tool_calls[{}]", path_, i);
      const Json& call = (*calls)[i];
      if (!call.is_object()) return Wrong(path, &call, "an object");
      const Json* type = Member(call, "type");
      if (type != nullptr && *type != "function")
        return Wrong(path + ".type", type, "\"function\"");
      const Json* id = Member(call, "id");
      if (id != nullptr && !id->is_string()) return Wrong(path + ".id", id, "a string");
      const Json* function = Member(call, "function");
      if (function == nullptr || !function->is_object())
        return Wrong(path + ".function", function, "an object");
      const Json* name = Member(*function, "name");
      if (name == nullptr || !name->is_string())
        return Wrong(path + ".function.name", name, "a string");
      const Json* arguments = Member(*function, "arguments");
      if (arguments != nullptr && !arguments->is_string() && !arguments->is_object())
        return Wrong(path + ".function.arguments", arguments, "the text of a JSON object");
    }
    out_["tool_calls"] = *calls;
    return {};
  }

  void NameIgnored() {
    for (const auto& [name, value] : message_->items()) {
      if (value.is_null()) continue;
      if (std::find(std::begin(kKnown), std::end(kKnown), name) != std::end(kKnown)) continue;
      std::string path = "messages[]." + name.substr(0, 64);
      const auto& all = result_.ignored;
      if (all.size() < 32 && std::find(all.begin(), all.end(), path) == all.end())
        result_.ignored.push_back(std::move(path));
    }
  }

  ChatMessages& result_;
  const Json* message_ = nullptr;
  size_t index_ = 0;
  std::string path_;
  std::string role_;
  Json out_;
};

}  // namespace

ApiResult<ChatMessages> ReadMessages(const Json& list) {
  if (!list.is_array() || list.empty() || list.size() > 10000)
    return *Wrong("messages", &list, "a list of 1 to 10000 messages");
  ChatMessages result;
  MessageReader reader(&result);
  for (size_t i = 0; i < list.size(); ++i)
    if (Refusal refusal = reader.Read(list[i], i)) return std::move(*refusal);
  return result;
}

std::optional<uint32_t> SecondsOf(std::string_view text) {
  uint32_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end + 1 != text.data() + text.size()) return std::nullopt;
  uint64_t unit = 0;
  if (*end == 's') unit = 1;
  if (*end == 'm') unit = 60;
  if (*end == 'h') unit = 3600;
  if (*end == 'd') unit = 86400;
  const uint64_t seconds = count * unit;
  if (seconds < 1 || seconds > uint64_t{30} * 86400) return std::nullopt;
  return static_cast<uint32_t>(seconds);
}

ApiResult<std::optional<uint32_t>> ReadTtl(const Json& object, const std::string& path) {
  const Json* ttl = Member(object, "ttl");
  if (ttl == nullptr) return std::optional<uint32_t>();
  if (ttl->is_string())
    if (const auto seconds = SecondsOf(ttl->get_ref<const std::string&>()))
      return std::optional<uint32_t>(seconds);
  return *Wrong(path + ".ttl", ttl, "a time such as \"30m\" or \"12h\", at most 30 days");
}

}  // namespace quire
