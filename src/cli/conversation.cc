#include "cli/conversation.h"

#include <utility>

#include "base/errors.h"

namespace quire {

StatusOr<std::unique_ptr<Conversation>> Conversation::Create(
    Engine& engine, std::optional<std::string> template_source) {
  std::optional<ChatTemplate> chat_template;
  if (template_source.has_value()) {
    QUIRE_ASSIGN_OR_RETURN(chat_template, ChatTemplate::Parse(std::move(*template_source)));
  }
  return std::unique_ptr<Conversation>(new Conversation(engine, std::move(chat_template)));
}

Conversation::Conversation(Engine& engine, std::optional<ChatTemplate> chat_template)
    : engine_(engine), template_(std::move(chat_template)) {}

nlohmann::ordered_json Conversation::MessagesWith(std::string_view user_text) const {
  nlohmann::ordered_json messages = nlohmann::ordered_json::array();
  if (!system_.empty()) messages.push_back({{"role", "system"}, {"content", system_}});
  for (const auto& message : messages_) messages.push_back(message);
  messages.push_back({{"role", "user"}, {"content", user_text}});
  return messages;
}

StatusOr<std::vector<TokenId>> Conversation::PromptIds(std::string_view user_text) const {
  if (!tokenizer().has_text())
    return InvalidArgument("the model has no tokenizer: give --prompt-ids, not text");
  if (!template_.has_value()) {
    return tokenizer().Encode(user_text, {.add_special = true, .parse_special = true});
  }
  const auto text_of = [&](std::optional<TokenId> id) {
    return id.has_value() ? std::string(tokenizer().Text(*id)) : std::string();
  };
  const nlohmann::ordered_json extra = {{"add_generation_prompt", true},
                                        {"bos_token", text_of(tokenizer().bos())},
                                        {"eos_token", text_of(tokenizer().eos())}};
  QUIRE_ASSIGN_OR_RETURN(const RenderedChat chat,
                         template_->Render(MessagesWith(user_text), extra, LocalTimeNow()));
  // Many templates write the BOS token themselves.
  const std::string bos = text_of(tokenizer().bos());
  const bool is_message = !chat.plain.empty() && chat.plain.front().begin == 0;
  const bool has_bos = !bos.empty() && chat.text.starts_with(bos) && !is_message;
  return tokenizer().Encode(chat.text, chat.plain,
                            {.add_special = !has_bos, .parse_special = true});
}

StatusOr<Generation> Conversation::Ask(std::string_view user_text, const GenerationParams& params,
                                       const std::function<void(std::string_view)>& on_text,
                                       const std::atomic<bool>* cancelled) {
  QUIRE_ASSIGN_OR_RETURN(const std::vector<TokenId> prompt, PromptIds(user_text));
  QUIRE_ASSIGN_OR_RETURN(Generation answer, AskIds(prompt, params, on_text, cancelled));
  messages_.push_back({{"role", "user"}, {"content", user_text}});
  messages_.push_back({{"role", "assistant"}, {"content", answer.text}});
  return answer;
}

StatusOr<Generation> Conversation::AskIds(std::span<const TokenId> prompt,
                                          const GenerationParams& params,
                                          const std::function<void(std::string_view)>& on_text,
                                          const std::atomic<bool>* cancelled) {
  return Generate(engine_, prompt, params, on_text, cancelled);
}

void Conversation::Clear() {
  messages_.clear();
  engine_.Ask([](StepLoop& loop) {
    loop.cache().DropAll();
    loop.runner().ReleaseIdleMemory();
  });
}

}  // namespace quire
