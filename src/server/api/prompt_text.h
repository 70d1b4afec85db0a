// Text of a request to token ids, and the checks of their number.
//
// Threading: pure functions. Cost: a text that can't fit the context is refused before it is
// tokenised; others take what the tokenizer takes.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/api_error.h"
#include "server/api/served_model.h"
#include "text/marked_text.h"
#include "text/tokenizer.h"

namespace quire {

// `plain`: the ranges in which no control token is read, as Tokenizer::Encode takes them.
// BOS is never there twice: not added to a text that begins with it. Empty text gives BOS if
// options.add_special and the tokenizer adds one, else no tokens.
// Errors: context_length_exceeded ("at least N tokens") for a text of more bytes than a context of
// the longest tokens; unsupported_parameter if the model has no text.
ApiResult<std::vector<TokenId>> EncodePrompt(const ServedModel& model, std::string_view text,
                                             std::span<const ByteRange> plain,
                                             EncodeOptions options, const std::string& param);

// Refuses a text of more bytes than a context of the longest tokens.
std::optional<ApiError> CheckTextBytes(const ServedModel& model, size_t num_bytes,
                                       const std::string& param);

// A list of token ids as it stands; may be empty.
ApiResult<std::vector<TokenId>> ReadTokenIds(const nlohmann::ordered_json& list,
                                             const ServedModel& model, const std::string& param);

// Refuses a prompt that leaves no room for a token, unless none is asked for, and an empty one.
std::optional<ApiError> CheckPromptLength(const std::vector<TokenId>& tokens,
                                          std::optional<uint32_t> max_tokens,
                                          const ServedModel& model, const std::string& param);

// `prompt` of a completions body: each text or list of ids, with its tokens.
struct ReadPrompts {
  std::vector<std::vector<TokenId>> tokens;
  std::vector<std::string> texts;  // with `keeps_texts`: as given, or decoded from ids
  bool is_list = false;            // errors name prompt[i], not prompt
};
struct PromptOptions {
  bool add_special = true;
  bool keeps_texts = false;
  bool show_special = false;  // in texts decoded from ids
};
// Not checked: the number of prompts times choices, the lengths (CheckPromptLength).
ApiResult<ReadPrompts> ReadPromptField(const nlohmann::ordered_json& prompt,
                                       const PromptOptions& options, const ServedModel& model);
// Prompts in the field, before anything is read of them.
size_t CountPrompts(const nlohmann::ordered_json& prompt);

// The same error with another param.
ApiError WithParam(ApiError error, std::string param);

}  // namespace quire
