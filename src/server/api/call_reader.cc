#include "server/api/call_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/message_text.h"
#include "server/api/call_fields.h"
#include "server/api/chat_messages.h"
#include "server/api/chat_prompt.h"
#include "server/api/prompt_text.h"
#include "server/api/sampling_fields.h"

namespace quire {
namespace {

using Json = nlohmann::ordered_json;
using Refusal = std::optional<ApiError>;

constexpr uint32_t kDefaultTtl = 30 * 60;

Refusal ReadModel(const CallFields& fields, const ServedModel& model, GenerationCall* call) {
  call->model = model.names.empty() ? std::string() : model.names.front();
  if (Refusal refusal = CheckModelName(fields.Find("model"), model)) return refusal;
  if (const std::string* name = fields.String("model")) call->model = *name;
  return {};
}

Refusal ReadStream(const CallFields& fields, GenerationCall* call) {
  call->stream = fields.Bool("stream", false);
  call->return_progress = fields.Bool("return_progress", false);
  call->return_token_ids = fields.Bool("return_token_ids", false);
  call->tokens_as_token_ids = fields.Bool("return_tokens_as_token_ids", false);
  call->skips_special_tokens = fields.Bool("skip_special_tokens", true);
  const Json* options = fields.Find("stream_options");
  if (options == nullptr) return {};
  if (!call->stream)
    return InvalidValue("stream_options", "stream_options needs stream: set it to true.");
  for (const auto& [name, value] : options->items()) {
    const std::string param = "stream_options." + name.substr(0, 64);
    bool* flag = nullptr;
    bool unused = false;
    if (name == "include_usage") flag = &call->include_usage;
    if (name == "continuous_usage_stats") flag = &call->continuous_usage;
    if (name == "include_obfuscation") flag = &unused;
    if (flag == nullptr) {
      call->ignored_fields.push_back(param);
      continue;
    }
    if (value.is_null()) continue;
    if (!value.is_boolean())
      return InvalidValue(param, fmt::format("{} is {}: need true or false.", param, Shown(value)));
    *flag = value.get<bool>();
  }
  return {};
}

// What is to be kept after the answer. `marks` are those of content parts.
Refusal ReadRetain(const CallFields& fields, std::vector<RetainMark> marks, GenerationCall* call) {
  uint32_t longest = 0;
  for (const auto& prompt : call->prompts)
    longest = std::max(longest, static_cast<uint32_t>(prompt.size()));
  uint32_t mark_ttl = kDefaultTtl;
  bool keeps_whole = false;
  uint32_t whole_ttl = kDefaultTtl;
  if (const Json* options = fields.Find("prompt_cache_options")) {
    const Json* mode = Member(*options, "mode");
    const bool is_known = mode == nullptr || *mode == "implicit" || *mode == "explicit";
    if (!is_known)
      return InvalidValue("prompt_cache_options.mode",
                          fmt::format("prompt_cache_options.mode is {}: need \"implicit\" or "
                                      "\"explicit\".",
                                      Shown(*mode)));
    ApiResult<std::optional<uint32_t>> ttl = ReadTtl(*options, "prompt_cache_options");
    if (!ttl.ok()) return ttl.error();
    for (const auto& [name, value] : options->items())
      if (name != "mode" && name != "ttl" && !value.is_null())
        call->ignored_fields.push_back("prompt_cache_options." + name.substr(0, 64));
    keeps_whole = mode == nullptr || *mode != "explicit";
    whole_ttl = mark_ttl = ttl.value().value_or(kDefaultTtl);
  }
  if (const std::string* retention = fields.String("prompt_cache_retention");
      retention != nullptr && *retention == "24h") {
    keeps_whole = true;
    whole_ttl = std::max<uint32_t>(fields.Find("prompt_cache_options") ? whole_ttl : 0, 86400);
  }
  for (RetainMark& mark : marks)
    if (mark.ttl_s == 0) mark.ttl_s = mark_ttl;
  if (keeps_whole) marks.push_back({.num_tokens = longest, .ttl_s = whole_ttl});
  call->retain = std::move(marks);
  return {};
}

Refusal ReadCache(const CallFields& fields, std::vector<RetainMark> marks, GenerationCall* call) {
  call->uses_prefixes = fields.Bool("cache_prompt", true);
  call->priority = static_cast<int32_t>(fields.Integer("priority").value_or(0));
  ApiResult<std::string> salt = ReadSalt(fields.object());
  if (!salt.ok()) return salt.error();
  call->salt = std::move(salt.value());
  return ReadRetain(fields, std::move(marks), call);
}

// For a header: printable, each short, not too many.
void ShortenNames(std::vector<std::string>* names) {
  constexpr size_t kMostNames = 32;
  if (names->size() > kMostNames) {
    names->resize(kMostNames);
    names->back() = "...";
  }
  for (std::string& name : *names) name = Printable(name, 64);
}

void AppendTo(std::vector<std::string>* all, const std::vector<std::string>& more) {
  all->insert(all->end(), more.begin(), more.end());
}

Refusal ReadChat(const CallFields& fields, const ServedModel& model, GenerationCall* call) {
  if (Refusal refusal = ReadSampling(fields, model, 1, call)) return refusal;
  ApiResult<ChatPrompt> prompt = ReadChatPrompt(fields, model);
  if (!prompt.ok()) return prompt.error();
  if (Refusal refusal =
          CheckPromptLength(prompt.value().tokens, call->max_tokens, model, "messages"))
    return refusal;
  call->prompts.push_back(std::move(prompt.value().tokens));
  AppendTo(&call->ignored_fields, prompt.value().ignored);
  return ReadCache(fields, std::move(prompt.value().marks), call);
}

Refusal ReadCompletion(const CallFields& fields, const ServedModel& model, GenerationCall* call) {
  const Json* prompt = fields.Find("prompt");
  if (prompt == nullptr)
    return InvalidValue("prompt", "prompt is missing: need a text or token ids.");
  const size_t num_prompts = CountPrompts(*prompt);
  if (Refusal refusal = ReadSampling(fields, model, num_prompts, call)) return refusal;
  call->echo = fields.Bool("echo", false);
  ApiResult<ReadPrompts> prompts =
      ReadPromptField(*prompt,
                      {.add_special = fields.Bool("add_special_tokens", true),
                       .keeps_texts = call->echo,
                       .show_special = !call->skips_special_tokens},
                      model);
  if (!prompts.ok()) return prompts.error();
  for (size_t i = 0; i < num_prompts; ++i) {
    const std::string param = prompts.value().is_list ? fmt::format("prompt[{}]", i) : "prompt";
    if (Refusal refusal =
            CheckPromptLength(prompts.value().tokens[i], call->max_tokens, model, param))
      return refusal;
  }
  call->prompts = std::move(prompts.value().tokens);
  call->prompt_texts = std::move(prompts.value().texts);
  return ReadCache(fields, {}, call);
}

ApiResult<GenerationCall> ReadCall(ApiForm form, std::string_view body, const ServedModel& model) {
  const ApiResult<Json> object = ReadJsonObject(body);
  if (!object.ok()) return object.error();
  const ApiResult<CallFields> fields = CallFields::Read(object.value(), form, model);
  if (!fields.ok()) return fields.error();
  GenerationCall call;
  call.form = form;
  call.ignored_fields = fields.value().ignored();
  if (Refusal refusal = ReadModel(fields.value(), model, &call)) return std::move(*refusal);
  if (Refusal refusal = ReadStream(fields.value(), &call)) return std::move(*refusal);
  Refusal refusal = form == ApiForm::kChat ? ReadChat(fields.value(), model, &call)
                                           : ReadCompletion(fields.value(), model, &call);
  if (refusal) return std::move(*refusal);
  if (model.refuses_unknown_fields && !call.ignored_fields.empty())
    return ApiError{.code = "unknown_parameter",
                    .message = fmt::format("Nobody knows the field {}.",
                                           Printable(call.ignored_fields.front(), 64)),
                    .param = call.ignored_fields.front()};
  ShortenNames(&call.ignored_fields);
  return call;
}

}  // namespace

ApiResult<GenerationCall> ReadChatCall(std::string_view body, const ServedModel& model) {
  return ReadCall(ApiForm::kChat, body, model);
}

ApiResult<GenerationCall> ReadCompletionCall(std::string_view body, const ServedModel& model) {
  return ReadCall(ApiForm::kCompletions, body, model);
}

namespace {
// Of a chat's prompt; they mean nothing beside prompt and token_ids.
constexpr std::string_view kChatFields[] = {"add_generation_prompt", "continue_final_message",
                                            "chat_template_kwargs", "reasoning_effort", "tools"};
}  // namespace

bool IsPromptField(std::string_view name) {
  return name == "prompt" || name == "messages" || name == "token_ids" || name == "model" ||
         std::ranges::find(kChatFields, name) != std::end(kChatFields);
}

ApiResult<std::vector<TokenId>> ReadPrompt(const Json& object, const ServedModel& model) {
  if (Refusal refusal = CheckModelName(Member(object, "model"), model)) return std::move(*refusal);
  const Json* ids = Member(object, "token_ids");
  const Json* prompt = Member(object, "prompt");
  const Json* messages = Member(object, "messages");
  const int num_given = (ids != nullptr) + (prompt != nullptr) + (messages != nullptr);
  if (num_given != 1) return InvalidValue("prompt", "Send one of prompt, messages and token_ids.");
  std::vector<TokenId> tokens;
  std::string param = "token_ids";
  if (ids != nullptr) {
    ApiResult<std::vector<TokenId>> read = ReadTokenIds(*ids, model, param);
    if (!read.ok()) return read.error();
    tokens = std::move(read.value());
  } else if (prompt != nullptr) {
    param = "prompt";
    const bool is_one = prompt->is_string() || (prompt->is_array() && CountPrompts(*prompt) == 1 &&
                                                !prompt->empty() && (*prompt)[0].is_number());
    if (!is_one)
      return InvalidValue(
          param, fmt::format("prompt is {}: need a text or a list of token ids.", Shown(*prompt)));
    ApiResult<ReadPrompts> read = ReadPromptField(*prompt, {}, model);
    if (!read.ok()) return read.error();
    tokens = std::move(read.value().tokens.front());
  } else {
    param = "messages";
    Json chat = {{"messages", *messages}};
    for (const std::string_view name : kChatFields)
      if (const Json* value = Member(object, name)) chat[std::string(name)] = *value;
    const ApiResult<CallFields> fields = CallFields::Read(chat, ApiForm::kChat, model);
    if (!fields.ok()) return fields.error();
    ApiResult<ChatPrompt> read =
        ReadChatPrompt(fields.value(), model, {.adds_generation_prompt = false});
    if (!read.ok()) return read.error();
    tokens = std::move(read.value().tokens);
  }
  if (Refusal refusal = CheckPromptLength(tokens, 0, model, param)) return std::move(*refusal);
  return tokens;
}

}  // namespace quire
