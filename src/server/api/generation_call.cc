#include "server/api/generation_call.h"

#include <algorithm>

namespace quire {

std::vector<Request> ToRequests(const GenerationCall& call, const std::string& tenant) {
  std::optional<uint32_t> prompt_logprobs = call.prompt_logprobs;
  // Nothing compares as less than any number.
  if (call.echo) prompt_logprobs = std::max(prompt_logprobs, call.logprobs);
  std::vector<Request> requests;
  requests.reserve(call.prompts.size());
  for (const std::vector<TokenId>& prompt : call.prompts)
    requests.push_back({.prompt = prompt,
                        .sampling = call.sampling,
                        .max_tokens = call.max_tokens,
                        .num_choices = call.num_sampled,
                        .priority = call.priority,
                        .tenant = tenant,
                        .salt = call.salt,
                        .prompt_logprobs = prompt_logprobs,
                        .uses_prefixes = call.uses_prefixes,
                        .keeps_times = true});
  return requests;
}

}  // namespace quire
