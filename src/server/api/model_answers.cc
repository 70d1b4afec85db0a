#include <fmt/format.h>

#include <algorithm>

#include "base/message_text.h"
#include "server/api/call_fields.h"
#include "server/api/call_reader.h"
#include "server/api/chat_prompt.h"
#include "server/api/json_text.h"
#include "server/api/prompt_text.h"
#include "text/detokenizer.h"
#include "text/utf8.h"

namespace quire {
namespace {

using Json = nlohmann::ordered_json;

Json ModelObject(const std::string& name, const ServedModel& model) {
  return {{"id", name},
          {"object", "model"},
          {"created", model.created},
          {"owned_by", model.owned_by},
          {"root", model.root},
          {"parent", nullptr},
          {"max_model_len", model.context_len},
          {"permission", Json::array()},
          {"meta",
           {{"n_vocab", model.vocab_size},
            {"n_ctx_train", model.trained_context_len},
            {"n_params", model.num_parameters},
            {"size", model.file_bytes}}}};
}

// A body with a served `model`, or none.
ApiResult<Json> ReadBody(std::string_view body, const ServedModel& model) {
  ApiResult<Json> object = ReadJsonObject(body);
  if (!object.ok()) return object;
  if (auto error = CheckModelName(Member(object.value(), "model"), model)) return *error;
  return object;
}

ApiResult<bool> ReadFlag(const Json& object, const char* name, bool fallback) {
  const Json* value = Member(object, name);
  if (value == nullptr) return fallback;
  if (value->is_boolean()) return value->get<bool>();
  return InvalidValue(name, fmt::format("{} is {}: need true or false.", name, Shown(*value)));
}

std::string TextOf(const ServedModel& model, TokenId id) {
  return model.tokenizer->IsValid(id) ? std::string(model.tokenizer->Text(id)) : std::string();
}

// llama.cpp's form: {content, add_special, parse_special, with_pieces} to {tokens}.
ApiResult<std::string> TokenizeContent(const Json& object, const ServedModel& model) {
  const Json& content = *Member(object, "content");
  if (!content.is_string())
    return InvalidValue("content", fmt::format("content is {}: need a string.", Shown(content)));
  const auto adds = ReadFlag(object, "add_special", false);
  if (!adds.ok()) return adds.error();
  const auto parses = ReadFlag(object, "parse_special", true);
  if (!parses.ok()) return parses.error();
  const auto pieces = ReadFlag(object, "with_pieces", false);
  if (!pieces.ok()) return pieces.error();
  const auto tokens =
      EncodePrompt(model, content.get_ref<const std::string&>(), {},
                   {.add_special = adds.value(), .parse_special = parses.value()}, "content");
  if (!tokens.ok()) return tokens.error();
  Json list = tokens.value();
  if (pieces.value()) {
    for (Json& item : list) {
      const auto id = item.get<TokenId>();
      Json piece = model.tokenizer->Piece(id);
      const auto& bytes = piece.get_ref<const std::string&>();
      // Bytes that are no text are told one by one, as llama.cpp does.
      if (ValidUtf8Length(bytes) != bytes.size()) {
        Json numbers = Json::array();
        for (const char c : bytes) numbers.push_back(static_cast<unsigned char>(c));
        piece = std::move(numbers);
      }
      item = {{"id", id}, {"piece", std::move(piece)}};
    }
  }
  return ToText({{"tokens", std::move(list)}});
}

std::string TokenizeAnswer(const std::vector<TokenId>& tokens, bool with_texts,
                           const ServedModel& model) {
  Json answer = {{"count", tokens.size()},
                 {"max_model_len", model.context_len},
                 {"tokens", tokens},
                 {"token_strs", nullptr}};
  if (with_texts) {
    Json texts = Json::array();
    for (const TokenId id : tokens) texts.push_back(TextOf(model, id));
    answer["token_strs"] = std::move(texts);
  }
  return ToText(answer);
}

}  // namespace

std::string AnswerModels(const ServedModel& model) {
  Json data = Json::array();
  for (const std::string& name : model.names)
    if (name != "*") data.push_back(ModelObject(name, model));
  if (data.empty()) data.push_back(ModelObject(model.root, model));
  return ToText({{"object", "list"}, {"data", std::move(data)}});
}

ApiResult<std::string> AnswerModel(const std::string& id, const ServedModel& model) {
  if (!model.IsServed(id)) return ModelNotFound(Printable(id, 96));
  return ToText(ModelObject(id, model));
}

ApiResult<std::string> AnswerTokenize(std::string_view body, const ServedModel& model) {
  const ApiResult<Json> read = ReadBody(body, model);
  if (!read.ok()) return read.error();
  const Json& object = read.value();
  const auto has = [&](const char* name) { return Member(object, name) != nullptr ? 1 : 0; };
  if (has("prompt") + has("messages") + has("content") > 1)
    return InvalidValue("prompt", "Send one of prompt, messages and content.");
  if (has("content") == 1) return TokenizeContent(object, model);
  const auto texts = ReadFlag(object, "return_token_strs", false);
  if (!texts.ok()) return texts.error();
  if (Member(object, "messages") != nullptr) {
    const ApiResult<CallFields> fields = CallFields::Read(object, ApiForm::kChat, model);
    if (!fields.ok()) return fields.error();
    const ApiResult<ChatPrompt> prompt = ReadChatPrompt(fields.value(), model);
    if (!prompt.ok()) return prompt.error();
    return TokenizeAnswer(prompt.value().tokens, texts.value(), model);
  }
  const Json* prompt = Member(object, "prompt");
  if (prompt == nullptr || !prompt->is_string())
    return InvalidValue("prompt", "Send prompt, a string, or messages (or content, a string).");
  const auto adds = ReadFlag(object, "add_special_tokens", true);
  if (!adds.ok()) return adds.error();
  const auto tokens = EncodePrompt(model, prompt->get_ref<const std::string&>(), {},
                                   {.add_special = adds.value(), .parse_special = true}, "prompt");
  if (!tokens.ok()) return tokens.error();
  return TokenizeAnswer(tokens.value(), texts.value(), model);
}

ApiResult<std::string> AnswerDetokenize(std::string_view body, const ServedModel& model) {
  const ApiResult<Json> object = ReadBody(body, model);
  if (!object.ok()) return object.error();
  const Json* list = Member(object.value(), "tokens");
  if (list == nullptr)
    return InvalidValue("tokens", "tokens is missing: need a list of token ids.");
  const auto ids = ReadTokenIds(*list, model, "tokens");
  if (!ids.ok()) return ids.error();
  for (size_t i = 0; i < ids.value().size(); ++i)
    if (!model.tokenizer->IsValid(ids.value()[i]))
      return InvalidValue(fmt::format("tokens[{}]", i), "The tokenizer has no such token.");
  const auto text =
      Decode(*model.tokenizer, ids.value(), {.starts_text = true, .show_special = true});
  if (!text.ok()) return WithParam(FromStatus(text.status()), "tokens");
  return ToText({{"prompt", text.value()}, {"content", text.value()}});
}

ApiResult<std::string> AnswerApplyTemplate(std::string_view body, const ServedModel& model) {
  const ApiResult<Json> object = ReadBody(body, model);
  if (!object.ok()) return object.error();
  const ApiResult<CallFields> fields = CallFields::Read(object.value(), ApiForm::kChat, model);
  if (!fields.ok()) return fields.error();
  const ApiResult<ChatPrompt> prompt =
      ReadChatPrompt(fields.value(), model, {.needs_tokens = false});
  if (!prompt.ok()) return prompt.error();
  return ToText({{"prompt", prompt.value().text}});
}

ApiResult<std::string> AnswerRender(ApiForm form, std::string_view body, const ServedModel& model) {
  const bool is_chat = form == ApiForm::kChat;
  const ApiResult<GenerationCall> call =
      is_chat ? ReadChatCall(body, model) : ReadCompletionCall(body, model);
  if (!call.ok()) return call.error();
  if (is_chat) return ToText({{"token_ids", call.value().prompts.front()}});
  Json list = Json::array();
  for (const auto& prompt : call.value().prompts) list.push_back({{"token_ids", prompt}});
  return ToText(list);
}

std::string AnswerTokenizerInfo(const ServedModel& model) {
  const auto text_of = [&](std::optional<TokenId> id) {
    return id ? Json(TextOf(model, *id)) : Json(nullptr);
  };
  Json answer = {{"tokenizer_class", "quire"},
                 {"bos_token", text_of(model.tokenizer->bos())},
                 {"eos_token", text_of(model.tokenizer->eos())},
                 {"pad_token", text_of(model.tokenizer->padding())},
                 {"unk_token", text_of(model.tokenizer->unknown())},
                 {"chat_template", nullptr}};
  if (model.chat_template != nullptr) answer["chat_template"] = model.chat_template->source();
  return ToText(answer);
}

}  // namespace quire
