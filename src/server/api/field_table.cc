#include "server/api/field_table.h"

#include <fmt/format.h>

namespace quire {
namespace {

constexpr double kMostTokens = 2147483647;
constexpr double kInt32 = 2147483648.0;
constexpr double kInt64 = 9223372036854775808.0;
// Floats that are neither zero nor infinite.
constexpr double kLeastFloat = 1.1754944e-38;
constexpr double kMostFloat = 3.4028234e38;

using enum FieldKind;
using enum FieldEffect;

// clang-format off
constexpr ApiField kFields[] = {
  {.name = "model", .kind = kString, .least = 0, .most = 1 << 20, .fallback = "the served model", .help = "A served name; another gives 404."},
  {.name = "messages", .bodies = kInChat, .kind = kMessages, .least = 1, .most = 10000, .help = "The chat, oldest first; required."},
  {.name = "prompt", .bodies = kInCompletions, .kind = kPrompt, .least = 1, .most = 1024, .help = "A text, texts, token ids or lists of those; required. An empty text is the BOS token where the tokenizer adds one, else 400."},
  {.name = "stream", .kind = kBool, .fallback = "false", .help = "Server-sent events as the answer grows."},
  {.name = "stream_options", .kind = kObject, .help = "include_usage, continuous_usage_stats; only with stream."},

  {.name = "max_tokens", .kind = kInteger, .least = 0, .most = kMostTokens, .fallback = "completions 16, chat the rest of the context", .help = "A ceiling, lowered to the room left. 0 computes and caches the prompt."},
  {.name = "max_completion_tokens", .kind = kInteger, .least = 0, .most = kMostTokens, .help = "The newer name of max_tokens; it wins."},
  {.name = "min_tokens", .kind = kInteger, .least = 0, .most = kMostTokens, .fallback = "0", .help = "Nothing ends the answer before; at most max_tokens."},
  {.name = "ignore_eos", .kind = kBool, .fallback = "false", .help = "End-of-answer tokens end nothing."},
  {.name = "temperature", .kind = kNumber, .least = 0, .most = 2, .fallback = "1.0", .help = "0 takes the likeliest token."},
  {.name = "top_p", .kind = kNumber, .least = 0, .most = 1, .fallback = "1.0", .help = "Keep the likeliest tokens that together reach it; 0 keeps one."},
  {.name = "min_p", .kind = kNumber, .least = 0, .most = 1, .fallback = "0.0", .help = "Keep tokens with at least this part of the best one's probability."},
  {.name = "top_k", .kind = kInteger, .least = -1, .most = kMostTokens, .fallback = "0", .help = "Keep the k likeliest; 0 and -1 keep all."},
  {.name = "presence_penalty", .kind = kNumber, .least = -2, .most = 2, .fallback = "0", .help = "Taken from the logits of tokens that were generated."},
  {.name = "frequency_penalty", .kind = kNumber, .least = -2, .most = 2, .fallback = "0", .help = "The same, once for each time."},
  {.name = "repetition_penalty", .kind = kNumber, .least = kLeastFloat, .most = kMostFloat, .fallback = "1.0", .help = "Divides the logits of tokens that were generated."},
  {.name = "repeat_penalty", .kind = kNumber, .least = kLeastFloat, .most = kMostFloat, .fallback = "1.0", .help = "Another name of repetition_penalty."},
  {.name = "seed", .kind = kInteger, .least = -kInt64, .most = kInt64, .fallback = "random", .help = "Equal seeds give equal answers; -1 is random."},
  {.name = "stop", .kind = kStrings, .most = 16, .help = "Texts that end the answer."},
  {.name = "include_stop_str_in_output", .kind = kBool, .fallback = "false", .help = "Leave the stop text in the answer."},
  {.name = "stop_token_ids", .kind = kIds, .most = 1024, .help = "Tokens that end the answer."},
  {.name = "allowed_token_ids", .kind = kIds, .most = 1 << 20, .help = "No others are sampled."},
  {.name = "logit_bias", .kind = kTokenBias, .most = 1024, .help = "Added to the logits of these tokens."},
  {.name = "n", .kind = kInteger, .least = 1, .most = 128, .fallback = "1", .help = "Choices for each prompt; prompts times choices are at most 1024."},
  {.name = "best_of", .bodies = kInCompletions, .kind = kInteger, .least = 1, .most = 128, .fallback = "n", .help = "Sample so many, tell the n with the highest mean log-probability; more than n not with stream."},

  {.name = "logprobs", .bodies = kInChat, .kind = kBool, .fallback = "false", .help = "Tell the log-probability of each token."},
  {.name = "top_logprobs", .bodies = kInChat, .kind = kInteger, .least = 0, .most = 20, .fallback = "0", .help = "And of so many likeliest ones; needs logprobs."},
  {.name = "logprobs", .bodies = kInCompletions, .kind = kInteger, .least = 0, .most = 20, .help = "Tell the log-probability of each token and of so many likeliest ones."},
  {.name = "prompt_logprobs", .kind = kInteger, .least = 0, .most = 20, .help = "The same for the tokens of the prompt; not with stream."},
  {.name = "echo", .bodies = kInCompletions, .kind = kBool, .fallback = "false", .help = "The prompt stands before the answer."},
  {.name = "add_special_tokens", .kind = kBool, .fallback = "completions true, chat false", .help = "Add BOS where the tokenizer wants it; never twice."},
  {.name = "skip_special_tokens", .kind = kBool, .fallback = "true", .help = "Control tokens give no text."},

  {.name = "add_generation_prompt", .bodies = kInChat, .kind = kBool, .fallback = "true", .help = "End the prompt with the start of an assistant's message."},
  {.name = "continue_final_message", .bodies = kInChat, .kind = kBool, .fallback = "false", .help = "Go on with the last message, an assistant's."},
  {.name = "chat_template_kwargs", .bodies = kInChat, .kind = kObject, .help = "Variables of the chat template: scalars, at most 4 KiB."},
  {.name = "chat_template", .bodies = kInChat, .kind = kString, .least = 1, .most = 1 << 18, .help = "A template of the request's own; only where the server trusts them."},
  {.name = "reasoning_effort", .bodies = kInChat, .kind = kChoice, .values = "none minimal low medium high xhigh max", .help = "Given to the template, with enable_thinking = not none."},

  {.name = "cache_salt", .kind = kString, .least = 1, .most = 128, .help = "A namespace inside the tenant's; no @ / \\ or NUL."},
  {.name = "priority", .kind = kInteger, .least = -kInt32, .most = kInt32 - 1, .fallback = "0", .help = "Lower runs earlier; below 0 needs a right of the key."},
  {.name = "prompt_cache_options", .kind = kObject, .help = "{mode: implicit or explicit, ttl: 30m}: keep the prompt in the cache."},
  {.name = "prompt_cache_retention", .kind = kChoice, .fallback = "in_memory", .values = "in_memory in-memory 24h", .help = "24h keeps the prompt in the cache so long."},
  {.name = "cache_prompt", .kind = kBool, .fallback = "true", .help = "false reads no prefix and leaves none."},
  {.name = "return_progress", .kind = kBool, .fallback = "false", .help = "Chunks with prompt_progress while the prompt is computed."},
  {.name = "return_token_ids", .kind = kBool, .fallback = "false", .help = "token_ids in each chunk, prompt_token_ids in the first."},
  {.name = "return_tokens_as_token_ids", .kind = kBool, .fallback = "false", .help = "token_id:123 in place of text in log-probabilities."},

  {.name = "user", .kind = kString, .effect = kIgnored, .most = 1 << 16, .help = "A name for the end user."},
  {.name = "metadata", .kind = kObject, .effect = kIgnored, .help = "Labels of the caller."},
  {.name = "store", .kind = kBool, .effect = kIgnored, .help = "Nothing is stored."},
  {.name = "service_tier", .kind = kString, .effect = kIgnored, .most = 64, .help = "There is one."},
  {.name = "prompt_cache_key", .kind = kString, .effect = kIgnored, .most = 1 << 16, .help = "A label."},
  {.name = "safety_identifier", .kind = kString, .effect = kIgnored, .most = 1 << 16, .help = "A label."},
  {.name = "prediction", .kind = kObject, .effect = kIgnored, .help = "A hint for speed."},
  {.name = "verbosity", .kind = kString, .effect = kIgnored, .most = 64, .help = "A hint."},
  {.name = "spaces_between_special_tokens", .kind = kBool, .effect = kIgnored, .help = "Tokens bring their own spaces."},
  {.name = "id_slot", .kind = kInteger, .effect = kIgnored, .least = -1, .most = kMostTokens, .help = "There are no slots."},
  {.name = "parallel_tool_calls", .bodies = kInChat, .kind = kBool, .effect = kIgnored, .help = "Says nothing without tools."},

  {.name = "tools", .bodies = kInChat, .kind = kList, .effect = kRefused, .most = 128, .values = "[[]]", .help = "Tool calls are not offered yet."},
  {.name = "tool_choice", .bodies = kInChat, .effect = kRefused, .values = R"(["none","auto"])", .help = "Tool calls are not offered yet."},
  {.name = "functions", .bodies = kInChat, .kind = kList, .effect = kRefused, .most = 128, .values = "[[]]", .help = "Tool calls are not offered yet."},
  {.name = "function_call", .bodies = kInChat, .effect = kRefused, .values = R"(["none","auto"])", .help = "Tool calls are not offered yet."},
  {.name = "response_format", .kind = kObject, .effect = kRefused, .values = R"([{"type":"text"}])", .help = "Structured output is not offered yet."},
  {.name = "structured_outputs", .kind = kObject, .effect = kRefused, .values = "[{}]", .help = "Structured output is not offered yet."},
  {.name = "guided_json", .effect = kRefused, .values = "[]", .help = "Structured output is not offered yet."},
  {.name = "guided_regex", .effect = kRefused, .values = "[]", .help = "Structured output is not offered yet."},
  {.name = "guided_choice", .effect = kRefused, .values = "[[]]", .help = "Structured output is not offered yet."},
  {.name = "guided_grammar", .effect = kRefused, .values = "[]", .help = "Structured output is not offered yet."},
  {.name = "guided_decoding_backend", .effect = kRefused, .values = "[]", .help = "Structured output is not offered yet."},
  {.name = "guided_whitespace_pattern", .effect = kRefused, .values = "[]", .help = "Structured output is not offered yet."},
  {.name = "grammar", .effect = kRefused, .values = R"([""])", .help = "Structured output is not offered yet."},
  {.name = "json_schema", .effect = kRefused, .values = "[]", .help = "Structured output is not offered yet."},
  {.name = "audio", .effect = kRefused, .values = "[]", .help = "Text only."},
  {.name = "modalities", .effect = kRefused, .values = R"([["text"],[]])", .help = "Text only."},
  {.name = "suffix", .effect = kRefused, .values = R"([""])", .help = "Text goes on from the prompt only."},
  {.name = "use_beam_search", .effect = kRefused, .values = "[false]", .help = "Answers are sampled."},
  {.name = "length_penalty", .effect = kRefused, .values = "[1.0]", .help = "Belongs to beam search."},
  {.name = "bad_words", .effect = kRefused, .values = "[[]]", .help = "Use logit_bias."},
  {.name = "prompt_embeds", .effect = kRefused, .values = "[[]]", .help = "Prompts are text or token ids."},
  {.name = "truncate_prompt_tokens", .effect = kRefused, .values = "[]", .help = "No prompt is cut."},
  {.name = "documents", .effect = kRefused, .values = "[[]]", .help = "Put them into the messages."},
  {.name = "logprob_token_ids", .effect = kRefused, .values = "[[]]", .help = "Use logprobs."},
  {.name = "web_search_options", .effect = kRefused, .values = "[]", .help = "Nothing is fetched."},
  {.name = "moderation", .effect = kRefused, .values = "[false]", .help = "There is none."},
  {.name = "kv_transfer_params", .effect = kRefused, .values = "[{}]", .help = "KV moves through the tiers only."},
  {.name = "mirostat", .effect = kRefused, .values = "[0]", .help = "A sampler that is not there."},
  {.name = "mirostat_tau", .effect = kRefused, .values = "[5.0]", .help = "A sampler that is not there."},
  {.name = "mirostat_eta", .effect = kRefused, .values = "[0.1]", .help = "A sampler that is not there."},
  {.name = "dry_multiplier", .effect = kRefused, .values = "[0]", .help = "A sampler that is not there."},
  {.name = "dry_base", .effect = kRefused, .values = "[1.75]", .help = "A sampler that is not there."},
  {.name = "dry_allowed_length", .effect = kRefused, .values = "[2]", .help = "A sampler that is not there."},
  {.name = "dry_penalty_last_n", .effect = kRefused, .values = "[0,-1]", .help = "A sampler that is not there."},
  {.name = "dry_sequence_breakers", .effect = kRefused, .values = R"([[],["\n",":","\"","*"]])", .help = "A sampler that is not there."},
  {.name = "xtc_probability", .effect = kRefused, .values = "[0]", .help = "A sampler that is not there."},
  {.name = "xtc_threshold", .effect = kRefused, .values = "[0.1]", .help = "A sampler that is not there."},
  {.name = "typical_p", .effect = kRefused, .values = "[1]", .help = "A sampler that is not there."},
  {.name = "top_n_sigma", .effect = kRefused, .values = "[-1]", .help = "A sampler that is not there."},
  {.name = "dynatemp_range", .effect = kRefused, .values = "[0]", .help = "A sampler that is not there."},
};
// clang-format on

std::string Number(double value) {
  return fmt::format("{:.0f}", value == kInt64 ? value - 1 : value);
}

}  // namespace

std::span<const ApiField> ApiFields() { return kFields; }

const ApiField* FindApiField(std::string_view name, ApiForm form) {
  for (const ApiField& field : kFields)
    if (field.name == name && field.IsIn(form)) return &field;
  return nullptr;
}

std::string ValuesInWords(const ApiField& field) {
  if (field.effect == FieldEffect::kRefused)
    return field.values == "[]" ? "nothing" : fmt::format("only a value of {}", field.values);
  const std::string least = Number(field.least);
  const std::string most = Number(field.most);
  switch (field.kind) {
    case kBool:
      return "true or false";
    case kInteger:
      return field.most >= kInt64 ? "an integer of 64 bits"
                                  : fmt::format("an integer from {} to {}", least, most);
    case kNumber:
      return field.least > 0 ? "a finite number above 0"
                             : fmt::format("a number from {} to {}", least, most);
    case kString:
      return fmt::format("a string of {} to {} bytes", least, most);
    case kChoice:
      return fmt::format("one of: {}", field.values);
    case kStrings:
      return fmt::format("a string or a list of at most {} strings, each of 1 to 256 bytes", most);
    case kIds:
      return fmt::format("a list of at most {} token ids of the vocabulary", most);
    case kTokenBias:
      return fmt::format("an object of at most {} token ids with numbers from -100 to 100", most);
    case kObject:
      return "an object";
    case kList:
      return "a list";
    case kPrompt:
      return fmt::format("a string, a list of token ids, or a list of 1 to {} of those", most);
    case kMessages:
      return fmt::format("a list of {} to {} objects", least, most);
    case kAny:
      break;
  }
  return "anything";
}

}  // namespace quire
