#include "server/api/chat_prompt.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/message_text.h"
#include "server/api/chat_messages.h"
#include "server/api/prompt_text.h"

namespace quire {
namespace {

using Json = nlohmann::ordered_json;
using Refusal = std::optional<ApiError>;

constexpr size_t kMaxKwargsBytes = 4096;
// Texts of the model's own tokens are read as control tokens, so a request may not set them.
constexpr std::string_view kRefusedKwargs[] = {
    "tokenize",  "messages",  "tools",     "chat_template", "add_generation_prompt",
    "bos_token", "eos_token", "pad_token", "unk_token",     "continue_final_message"};

Refusal AddKwargs(const CallFields& fields, Json* variables) {
  const Json* kwargs = fields.Find("chat_template_kwargs");
  if (kwargs == nullptr) return {};
  const std::string path = "chat_template_kwargs";
  size_t num_bytes = 0;
  for (const auto& [name, value] : kwargs->items()) {
    const std::string param = path + "." + name.substr(0, 64);
    if (std::find(std::begin(kRefusedKwargs), std::end(kRefusedKwargs), name) !=
        std::end(kRefusedKwargs))
      return InvalidValue(param, fmt::format("{} is not a variable that a request may set.", name));
    if (value.is_structured())
      return InvalidValue(param, fmt::format("{} is {}: need a string, number, bool or null.",
                                             Printable(param), Shown(value)));
    num_bytes += name.size() + 16;
    if (value.is_string()) num_bytes += value.get_ref<const std::string&>().size();
    if (num_bytes > kMaxKwargsBytes)
      return InvalidValue(path, fmt::format("{} is larger than {} bytes.", path, kMaxKwargsBytes));
    (*variables)[name] = value;
  }
  return {};
}

class ChatRenderer {
 public:
  ChatRenderer(const CallFields& fields, const ServedModel& model, ChatPromptOptions options)
      : fields_(fields), model_(model), options_(options) {}

  ApiResult<ChatPrompt> Read() {
    if (Refusal refusal = ChooseTemplate()) return std::move(*refusal);
    if (Refusal refusal = ReadVariables()) return std::move(*refusal);
    const Json* list = fields_.Find("messages");
    if (list == nullptr)
      return InvalidValue("messages", "messages is missing: need a list of messages.");
    ApiResult<ChatMessages> chat = ReadMessages(*list);
    if (!chat.ok()) return chat.error();
    if (Refusal refusal = CheckFinalMessage(chat.value().messages)) return std::move(*refusal);

    ApiResult<RenderedChat> rendered = Render(chat.value().messages, generates_);
    if (!rendered.ok()) return rendered.error();
    if (continues_)
      if (Refusal refusal = CutAfterFinalMessage(chat.value().messages.back(), &rendered.value()))
        return std::move(*refusal);
    ChatPrompt prompt;
    prompt.ignored = std::move(chat.value().ignored);
    if (options_.needs_tokens) {
      ApiResult<std::vector<TokenId>> tokens = Encode(rendered.value());
      if (!tokens.ok()) return tokens.error();
      prompt.tokens = std::move(tokens.value());
      for (const CacheMark& mark : chat.value().marks)
        AddMark(mark, chat.value().messages, &prompt);
    }
    prompt.text = std::move(rendered.value().text);
    return prompt;
  }

 private:
  Refusal ChooseTemplate() {
    template_ = model_.chat_template;
    if (const std::string* source = fields_.String("chat_template")) {
      if (!model_.trusts_request_templates)
        return UnsupportedParameter("chat_template",
                                    "Templates in requests are off: start the server with "
                                    "--trust-request-chat-template, or leave chat_template out.");
      StatusOr<ChatTemplate> parsed = ChatTemplate::Parse(*source);
      if (!parsed.ok()) return InvalidValue("chat_template", parsed.status().message());
      own_template_ = std::make_unique<ChatTemplate>(std::move(*parsed));
      template_ = own_template_.get();
    }
    if (template_ != nullptr) return {};
    return ApiError{.status = 404,
                    .code = "model_not_supported",
                    .message =
                        "This model has no chat template: use /v1/completions, or start the "
                        "server with --chat-template.",
                    .param = "model"};
  }

  Refusal ReadVariables() {
    variables_ = model_.chat_template_kwargs;
    if (!variables_.is_object()) variables_ = Json::object();
    if (const std::string* effort = fields_.String("reasoning_effort")) {
      variables_["reasoning_effort"] = *effort;
      variables_["enable_thinking"] = *effort != "none";
    }
    if (Refusal refusal = AddKwargs(fields_, &variables_)) return refusal;
    const auto text_of = [&](std::optional<TokenId> id) {
      return id ? std::string(model_.tokenizer->Text(*id)) : std::string();
    };
    variables_["bos_token"] = text_of(model_.tokenizer->bos());
    variables_["eos_token"] = text_of(model_.tokenizer->eos());

    continues_ = fields_.Bool("continue_final_message", false);
    generates_ =
        fields_.Bool("add_generation_prompt", !continues_ && options_.adds_generation_prompt);
    if (continues_ && generates_)
      return InvalidValue("continue_final_message",
                          "continue_final_message and add_generation_prompt are both true: the "
                          "first goes on with the last message, the second starts a new one.");
    return {};
  }

  Refusal CheckFinalMessage(const Json& messages) const {
    if (!continues_) return {};
    const Json& last = messages.back();
    const Json& content = last["content"];
    if (last["role"] == "assistant" && content.is_string() &&
        !content.get_ref<const std::string&>().empty())
      return {};
    return InvalidValue("continue_final_message",
                        "continue_final_message needs a last message of the assistant with text.");
  }

  ApiResult<RenderedChat> Render(const Json& messages, bool generates) {
    // Before the template runs over what can't fit anyway.
    size_t num_bytes = 0;
    for (const Json& message : messages)
      if (const auto content = message.find("content");
          content != message.end() && content->is_string())
        num_bytes += content->get_ref<const std::string&>().size();
    if (auto error = CheckTextBytes(model_, num_bytes, "messages")) return std::move(*error);
    variables_["add_generation_prompt"] = generates;
    StatusOr<RenderedChat> rendered = template_->Render(messages, variables_, LocalTimeNow());
    if (rendered.ok()) return std::move(*rendered);
    return WithParam(InvalidValue("", rendered.status().message()), "messages");
  }

  // Leaves the last message open: what the template wrote after its text goes.
  static Refusal CutAfterFinalMessage(const Json& message, RenderedChat* chat) {
    std::string_view content = message["content"].get_ref<const std::string&>();
    constexpr std::string_view kSpace = " \t\r\n";
    size_t place = chat->text.rfind(content);
    if (place == std::string::npos) {  // many templates trim it
      const size_t begin = content.find_first_not_of(kSpace);
      if (begin != std::string_view::npos) {
        content = content.substr(begin, content.find_last_not_of(kSpace) + 1 - begin);
        place = chat->text.rfind(content);
      }
    }
    if (place == std::string::npos)
      return InvalidValue("continue_final_message",
                          "The model's chat template changes the last message: it can't go on.");
    const size_t end = place + content.size();
    chat->text.resize(end);
    std::erase_if(chat->plain, [end](const ByteRange& range) { return range.begin >= end; });
    for (ByteRange& range : chat->plain) range.end = std::min(range.end, end);
    return {};
  }

  ApiResult<std::vector<TokenId>> Encode(const RenderedChat& chat) const {
    return EncodePrompt(
        model_, chat.text, chat.plain,
        {.add_special = fields_.Bool("add_special_tokens", false), .parse_special = true},
        "messages");
  }

  // The tokens that the prompt has in common with the chat up to the marked part. A template that
  // can't render that much keeps nothing.
  void AddMark(const CacheMark& mark, const Json& messages, ChatPrompt* prompt) {
    Json start = Json::array();
    for (size_t i = 0; i <= mark.message; ++i) start.push_back(messages[i]);
    start.back()["content"] = mark.content;
    const ApiResult<RenderedChat> rendered = Render(start, false);
    if (!rendered.ok()) return;
    const ApiResult<std::vector<TokenId>> tokens = Encode(rendered.value());
    if (!tokens.ok()) return;
    const auto& whole = prompt->tokens;
    const auto& part = tokens.value();
    const size_t most = std::min(whole.size(), part.size());
    size_t num_equal = 0;
    while (num_equal < most && whole[num_equal] == part[num_equal]) ++num_equal;
    prompt->marks.push_back(
        {.num_tokens = static_cast<uint32_t>(num_equal), .ttl_s = mark.ttl_s.value_or(0)});
  }

  const CallFields& fields_;
  const ServedModel& model_;
  const ChatPromptOptions options_;
  std::unique_ptr<const ChatTemplate> own_template_;
  const ChatTemplate* template_ = nullptr;
  Json variables_;
  bool generates_ = true;
  bool continues_ = false;
};

}  // namespace

ApiResult<ChatPrompt> ReadChatPrompt(const CallFields& fields, const ServedModel& model,
                                     const ChatPromptOptions& options) {
  QUIRE_CHECK(fields.form() == ApiForm::kChat);
  return ChatRenderer(fields, model, options).Read();
}

}  // namespace quire
