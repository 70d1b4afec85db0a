#include "server/api/generation_call.h"

#include <algorithm>

namespace quire {

std::vector<Request> ToRequests(const GenerationCall& call, const std::string& tenant) {
  std::optional<uint32_t> prompt_logprobs = call.prompt_logprobs;
  // Nothing compares as less than any number.
  if (call.echo) prompt_logprobs = std::max(prompt_logprobs, call.logprobs);
  std::vector<Request> requests;
  requests.reserve(call.prompts.size());
  SamplingParams sampling = call.sampling;
  sampling.top_logprobs.reset();
  if (call.logprobs.has_value()) {
    sampling.top_logprobs = static_cast<int32_t>(*call.logprobs);
  } else if (call.num_sampled > call.num_choices) {
    sampling.top_logprobs = 0;  // the best are those of the highest mean, told or not
  }
  for (const std::vector<TokenId>& prompt : call.prompts)
    requests.push_back({.prompt = prompt,
                        .sampling = sampling,
                        .max_tokens = call.max_tokens,
                        .num_choices = call.num_sampled,
                        .priority = call.priority,
                        .tenant = tenant,
                        .salt = call.salt,
                        .prompt_logprobs = prompt_logprobs,
                        .uses_prefixes = call.uses_prefixes,
                        .shows_special = !call.skips_special_tokens,
                        .keeps_times = true});
  return requests;
}

}  // namespace quire
