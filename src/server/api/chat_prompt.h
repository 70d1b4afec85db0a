// A chat body's prompt: its messages through the model's chat template, to tokens.
//
// Control tokens are read only where the template itself wrote them: what a client's texts say
// stays plain (text/marked_text.h).
//
// Threading: pure functions. Rendering takes up to 2 MiB of stack.
#pragma once

#include <string>
#include <vector>

#include "server/api/api_error.h"
#include "server/api/call_fields.h"
#include "server/api/generation_call.h"
#include "server/api/served_model.h"

namespace quire {

struct ChatPrompt {
  std::string text;  // what the template made
  std::vector<TokenId> tokens;
  // Of parts with a cache mark; ttl_s is 0 where the part says nothing.
  std::vector<RetainMark> marks;
  std::vector<std::string> ignored;  // "messages[].field"
};

struct ChatPromptOptions {
  bool adds_generation_prompt = true;  // where the body says nothing
  bool needs_tokens = true;            // else text only
};

// Of `fields` it reads messages, add_generation_prompt, continue_final_message, add_special_tokens,
// chat_template, chat_template_kwargs and reasoning_effort. Requires: fields.form() is kChat.
ApiResult<ChatPrompt> ReadChatPrompt(const CallFields& fields, const ServedModel& model,
                                     const ChatPromptOptions& options = {});

}  // namespace quire
