// Log-probabilities as the two forms of the API tell them, and vLLM's of a prompt.
//
// A token's text here is its own bytes, with U+FFFD for what is no character alone; a control token
// is told as the vocabulary writes it, although the answer's text has nothing of it. An id without
// any text is "token_id:N".
//
// Threading: pure functions. Cost: linear in the tokens times the alternatives.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/ids.h"
#include "engine/logprobs.h"
#include "text/tokenizer.h"

namespace quire {

struct ToldToken {
  TokenId id = 0;
  std::optional<Logprobs> logprobs = {};  // nothing for the first token of a prompt
  uint32_t offset = 0;                    // code points before its text
};

struct LogprobsForm {
  const Tokenizer* tokenizer = nullptr;
  uint32_t num_top = 0;        // alternatives told
  bool tokens_as_ids = false;  // "token_id:N" in place of every text
};

// {"content":[{"token","logprob","bytes","top_logprobs":[{"token","logprob","bytes"}]}]}
void AppendChatLogprobs(std::string& json, std::span<const ToldToken> tokens,
                        const LogprobsForm& form);

// {"tokens":[],"token_logprobs":[],"top_logprobs":[{text: logprob}],"text_offset":[]}
// The token itself is among its alternatives; of two with one text the larger value stands.
void AppendCompletionLogprobs(std::string& json, std::span<const ToldToken> tokens,
                              const LogprobsForm& form);

// [null, {id: {"logprob","rank","decoded_token"}}]: the token's rank is null below the
// alternatives.
void AppendPromptLogprobs(std::string& json, std::span<const ToldToken> tokens,
                          const LogprobsForm& form);

}  // namespace quire
