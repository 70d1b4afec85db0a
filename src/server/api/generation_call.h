// GenerationCall: what POST /v1/chat/completions or /v1/completions asks, read and checked: every
// field has its meaning here or was refused.
//
// The prompts are tokens already. From it come the engine's Requests (one a prompt) and the form of
// the answer (api/answer_writer.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "engine/request.h"
#include "engine/sampling_params.h"

namespace quire {

enum class ApiForm { kChat, kCompletions };

// A prefix of each prompt to keep after the answer: whole pages of the first `num_tokens`, or of
// all of a shorter prompt.
struct RetainMark {
  uint32_t num_tokens = 0;
  uint32_t ttl_s = 0;
};

struct GenerationCall {
  ApiForm form = ApiForm::kChat;
  std::string model;  // the name to tell in the answer
  std::vector<std::vector<TokenId>> prompts;
  std::vector<std::string> prompt_texts;  // with echo: what stands before the answer, one a prompt

  SamplingParams sampling;  // its seed is set; choices differ by their number
  std::optional<uint32_t> max_tokens;
  uint32_t num_choices = 1;  // told, for each prompt
  uint32_t num_sampled = 1;  // best_of >= num_choices
  bool skips_special_tokens = true;

  // Log-probabilities; in chat 0 to 20 with logprobs true, in completions `logprobs`.
  std::optional<uint32_t> logprobs;
  bool echo = false;
  std::optional<uint32_t> prompt_logprobs;

  bool stream = false;
  bool include_usage = false;     // a usage chunk at the end
  bool continuous_usage = false;  // usage in each chunk
  bool return_progress = false;
  bool return_token_ids = false;
  bool tokens_as_token_ids = false;  // "token_id:123" in place of text in log-probabilities

  bool uses_prefixes = true;  // cache_prompt
  std::string salt;
  int32_t priority = 0;
  std::vector<RetainMark> retain;

  std::vector<std::string> ignored_fields;  // for x-quire-ignored
};

// One for each prompt; the tenant is the key's. They ask for what the answer needs: times, and
// log-probabilities also for best_of and of echoed prompts.
std::vector<Request> ToRequests(const GenerationCall& call, const std::string& tenant);

}  // namespace quire
