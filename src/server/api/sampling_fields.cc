#include "server/api/sampling_fields.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <charconv>
#include <chrono>

namespace quire {
namespace {

using Json = nlohmann::ordered_json;
using Refusal = std::optional<ApiError>;

constexpr uint64_t kMaxChoicesInAll = 1024;
constexpr uint32_t kCompletionTokens = 16;  // max_tokens of a completion that doesn't say

uint64_t RandomSeed() {
  uint64_t seed = 0;
  if (getrandom(&seed, sizeof(seed), 0) == sizeof(seed)) return seed;
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

void SetFloat(const CallFields& fields, std::string_view name, float* value) {
  if (const auto number = fields.Number(name)) *value = static_cast<float>(*number);
}

void ReadChoosing(const CallFields& fields, SamplingParams* sampling) {
  SetFloat(fields, "temperature", &sampling->temperature);
  SetFloat(fields, "top_p", &sampling->top_p);
  SetFloat(fields, "min_p", &sampling->min_p);
  SetFloat(fields, "presence_penalty", &sampling->presence_penalty);
  SetFloat(fields, "frequency_penalty", &sampling->frequency_penalty);
  SetFloat(fields, "repeat_penalty", &sampling->repetition_penalty);
  SetFloat(fields, "repetition_penalty", &sampling->repetition_penalty);
  if (const auto k = fields.Integer("top_k")) sampling->top_k = static_cast<int32_t>(*k);
  const std::optional<int64_t> seed = fields.Integer("seed");
  sampling->seed = seed && *seed != -1 ? static_cast<uint64_t>(*seed) : RandomSeed();
  sampling->allowed_tokens = fields.Ids("allowed_token_ids");
  if (const Json* biases = fields.Find("logit_bias")) {
    sampling->logit_bias.clear();
    for (const auto& [id, bias] : biases->items()) {
      LogitBias entry{.bias = static_cast<float>(bias.get<double>())};
      std::from_chars(id.data(), id.data() + id.size(), entry.id);
      sampling->logit_bias.push_back(entry);
    }
  }
}

void ReadEnd(const CallFields& fields, SamplingParams* sampling) {
  sampling->ignore_eos = fields.Bool("ignore_eos", false);
  sampling->include_stop_string = fields.Bool("include_stop_str_in_output", false);
  sampling->stop_tokens = fields.Ids("stop_token_ids");
  if (const Json* stop = fields.Find("stop")) {
    sampling->stop_strings.clear();
    if (stop->is_string()) sampling->stop_strings.push_back(stop->get<std::string>());
    if (stop->is_array())
      for (const Json& text : *stop) sampling->stop_strings.push_back(text.get<std::string>());
  }
  sampling->min_tokens = static_cast<uint32_t>(fields.Integer("min_tokens").value_or(0));
}

Refusal ReadChoices(const CallFields& fields, size_t num_prompts, GenerationCall* call) {
  call->num_choices = static_cast<uint32_t>(fields.Integer("n").value_or(1));
  call->num_sampled = call->num_choices;
  const bool is_completion = fields.form() == ApiForm::kCompletions;
  if (const auto best_of = is_completion ? fields.Integer("best_of") : std::nullopt) {
    if (*best_of < call->num_choices)
      return InvalidValue("best_of", fmt::format("best_of is {}: need at least n, {}.", *best_of,
                                                 call->num_choices));
    call->num_sampled = static_cast<uint32_t>(*best_of);
    if (call->stream && call->num_sampled > call->num_choices)
      return InvalidValue("best_of", "best_of above n can't be streamed: set stream to false.");
  }
  if (num_prompts * call->num_sampled <= kMaxChoicesInAll) return {};
  return InvalidValue(
      call->num_sampled > 1 ? (call->num_sampled > call->num_choices ? "best_of" : "n") : "prompt",
      fmt::format("{} prompts times {} choices: at most {} in one request.", num_prompts,
                  call->num_sampled, kMaxChoicesInAll));
}

Refusal ReadLogprobs(const CallFields& fields, GenerationCall* call) {
  if (fields.form() == ApiForm::kChat) {
    const auto top = fields.Integer("top_logprobs");
    if (fields.Bool("logprobs", false)) {
      call->logprobs = static_cast<uint32_t>(top.value_or(0));
    } else if (top.value_or(0) > 0) {
      return InvalidValue("top_logprobs", "top_logprobs needs logprobs: set it to true.");
    }
  } else if (const auto count = fields.Integer("logprobs")) {
    call->logprobs = static_cast<uint32_t>(*count);
  }
  if (const auto count = fields.Integer("prompt_logprobs")) {
    if (call->stream)
      return InvalidValue("prompt_logprobs",
                          "prompt_logprobs can't be streamed: set stream to false.");
    call->prompt_logprobs = static_cast<uint32_t>(*count);
  }
  return {};
}

// One field by two names: they may both be there, but not differ.
Refusal CheckTwin(const CallFields& fields, std::string_view name, std::string_view other) {
  const auto value = fields.Number(name), twin = fields.Number(other);
  if (!value.has_value() || !twin.has_value() || *value == *twin) return {};
  return InvalidValue(std::string(name), fmt::format("{} and {} are one field and differ: send one "
                                                     "of them.",
                                                     name, other));
}

}  // namespace

std::optional<ApiError> ReadSampling(const CallFields& fields, const ServedModel& model,
                                     size_t num_prompts, GenerationCall* call) {
  call->sampling = model.sampling_defaults;
  if (Refusal refusal = CheckTwin(fields, "repeat_penalty", "repetition_penalty")) return refusal;
  if (Refusal refusal = ReadChoices(fields, num_prompts, call)) return refusal;
  ReadChoosing(fields, &call->sampling);
  ReadEnd(fields, &call->sampling);
  if (Refusal refusal = ReadLogprobs(fields, call)) return refusal;

  auto most = fields.Integer("max_completion_tokens");
  if (!most) most = fields.Integer("max_tokens");
  if (!most && fields.form() == ApiForm::kCompletions) most = kCompletionTokens;
  if (most) call->max_tokens = static_cast<uint32_t>(*most);
  if (call->max_tokens && call->sampling.min_tokens > *call->max_tokens)
    return InvalidValue("min_tokens", fmt::format("min_tokens is {}: need at most max_tokens, {}.",
                                                  call->sampling.min_tokens, *call->max_tokens));
  if (!call->sampling.stop_strings.empty() && !model.tokenizer->has_text())
    return UnsupportedParameter("stop", "The model has no text: use stop_token_ids.");
  // The engine refuses the same; here the error can name the field. What is left to refuse by now
  // are tokens that all end the answer before min_tokens.
  SamplingParams prepared = call->sampling;
  const std::span<const TokenId> ends = model.tokenizer->has_text()
                                            ? model.tokenizer->end_of_generation()
                                            : std::span<const TokenId>();
  if (const Status status = prepared.Prepare(model.vocab_size, ends); !status.ok())
    return InvalidValue("min_tokens", status.message());
  return {};
}

}  // namespace quire
