// Conversation: messages of a chat with one model.
//
// Each answer renders all messages by the chat template; the engine computes only what the prefix
// tree does not have. Without a template (raw) each prompt is a text of its own.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "engine/engine.h"
#include "engine/generation.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace quire {

class Conversation {
 public:
  // `engine` must outlive it. `template_source`: the chat template to use; nothing: raw text.
  static StatusOr<std::unique_ptr<Conversation>> Create(Engine& engine,
                                                        std::optional<std::string> template_source);

  const Tokenizer& tokenizer() const { return engine_.tokenizer(); }

  // The ids of the whole prompt if `user_text` came next.
  StatusOr<std::vector<TokenId>> PromptIds(std::string_view user_text) const;

  // Answers `user_text`; both become part of the history, also when the answer was cut short.
  // A failed call leaves the history as it was.
  StatusOr<Generation> Ask(std::string_view user_text, const GenerationParams& params,
                           const std::function<void(std::string_view)>& on_text,
                           const std::atomic<bool>* cancelled);
  // The same for a prompt that is ids already; it becomes no part of a history.
  StatusOr<Generation> AskIds(std::span<const TokenId> prompt, const GenerationParams& params,
                              const std::function<void(std::string_view)>& on_text,
                              const std::atomic<bool>* cancelled);

  // A message that comes first, if the template takes one.
  void SetSystem(std::string text) { system_ = std::move(text); }
  void Clear();  // forgets all messages but the system's

 private:
  Conversation(Engine& engine, std::optional<ChatTemplate> chat_template);
  nlohmann::ordered_json MessagesWith(std::string_view user_text) const;

  Engine& engine_;
  std::optional<ChatTemplate> template_;
  std::string system_;
  nlohmann::ordered_json messages_ = nlohmann::ordered_json::array();
};

}  // namespace quire
