#include "engine/sampling_params.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/errors.h"
#include "text/utf8.h"

namespace quire {
namespace {

// Written so that NaN fails.
Status CheckRange(std::string_view field, float value, float least, float most) {
  if (value >= least && value <= most) return OkStatus();
  return InvalidArgument("{} {}: need {} to {}", field, value, least, most);
}

Status CheckId(std::string_view field, TokenId id, uint32_t num_tokens) {
  if (id >= 0 && static_cast<uint32_t>(id) < num_tokens) return OkStatus();
  return InvalidArgument("{}: token id {} is outside the vocabulary: 0 to {}", field, id,
                         num_tokens - 1);
}

Status CheckIds(std::string_view field, std::span<const TokenId> ids, uint32_t num_tokens) {
  for (const TokenId id : ids) QUIRE_RETURN_IF_ERROR(CheckId(field, id, num_tokens));
  return OkStatus();
}

void SortUnique(std::vector<TokenId>& ids) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
}

Status CheckStopStrings(std::span<const std::string> strings) {
  if (strings.size() > SamplingParams::kMaxStopStrings)
    return InvalidArgument("{} stop strings: need at most {}", strings.size(),
                           SamplingParams::kMaxStopStrings);
  for (size_t i = 0; i < strings.size(); ++i) {
    const std::string& text = strings[i];
    if (text.empty() || text.size() > SamplingParams::kMaxStopStringBytes)
      return InvalidArgument("stop string {} has {} bytes: need 1 to {}", i, text.size(),
                             SamplingParams::kMaxStopStringBytes);
    if (const size_t valid = ValidUtf8Length(text); valid != text.size())
      return InvalidArgument("stop string {} is not UTF-8 from byte {} on", i, valid);
  }
  return OkStatus();
}

}  // namespace

Status SamplingParams::Validate() const {
  QUIRE_RETURN_IF_ERROR(CheckRange("temperature", temperature, 0, 2));
  if (top_k < -1) return InvalidArgument("top_k {}: need 1 or more, or 0 or -1 for off", top_k);
  QUIRE_RETURN_IF_ERROR(CheckRange("top_p", top_p, 0, 1));
  QUIRE_RETURN_IF_ERROR(CheckRange("min_p", min_p, 0, 1));
  QUIRE_RETURN_IF_ERROR(CheckRange("presence_penalty", presence_penalty, -2, 2));
  QUIRE_RETURN_IF_ERROR(CheckRange("frequency_penalty", frequency_penalty, -2, 2));
  if (!(repetition_penalty > 0 && std::isfinite(repetition_penalty)))
    return InvalidArgument("repetition_penalty {}: need a finite number above 0",
                           repetition_penalty);
  if (logit_bias.size() > kMaxLogitBiases)
    return InvalidArgument("logit_bias of {} tokens: need at most {}", logit_bias.size(),
                           kMaxLogitBiases);
  for (const LogitBias& bias : logit_bias)
    QUIRE_RETURN_IF_ERROR(
        CheckRange(fmt::format("logit_bias of token {}:", bias.id), bias.bias, -100, 100));
  if (stop_tokens.size() > kMaxStopTokens)
    return InvalidArgument("stop_tokens has {} ids: need at most {}", stop_tokens.size(),
                           kMaxStopTokens);
  QUIRE_RETURN_IF_ERROR(CheckStopStrings(stop_strings));
  if (top_logprobs.has_value() && (*top_logprobs < 0 || *top_logprobs > kMaxTopLogprobs))
    return InvalidArgument("top_logprobs {}: need 0 to {}", *top_logprobs, kMaxTopLogprobs);
  return OkStatus();
}

Status SamplingParams::Prepare(uint32_t num_tokens, std::span<const TokenId> end_of_generation) {
  QUIRE_CHECK(num_tokens > 0);
  QUIRE_RETURN_IF_ERROR(Validate());
  QUIRE_RETURN_IF_ERROR(CheckIds("stop_tokens", stop_tokens, num_tokens));
  if (allowed_tokens.size() > num_tokens)
    return InvalidArgument("allowed_tokens has {} ids, the vocabulary {}", allowed_tokens.size(),
                           num_tokens);
  QUIRE_RETURN_IF_ERROR(CheckIds("allowed_tokens", allowed_tokens, num_tokens));
  for (const LogitBias& bias : logit_bias)
    QUIRE_RETURN_IF_ERROR(CheckId("logit_bias", bias.id, num_tokens));
  std::sort(logit_bias.begin(), logit_bias.end(),
            [](const LogitBias& a, const LogitBias& b) { return a.id < b.id; });
  const auto twice =
      std::adjacent_find(logit_bias.begin(), logit_bias.end(),
                         [](const LogitBias& a, const LogitBias& b) { return a.id == b.id; });
  if (twice != logit_bias.end())
    return InvalidArgument("logit_bias names token {} twice: give it once", twice->id);
  SortUnique(allowed_tokens);

  end_tokens = stop_tokens;
  if (!ignore_eos)
    end_tokens.insert(end_tokens.end(), end_of_generation.begin(), end_of_generation.end());
  SortUnique(end_tokens);
  if (min_tokens == 0) return OkStatus();
  if (end_tokens.size() == num_tokens)
    return InvalidArgument("min_tokens {}: every token ends the answer: none can come before",
                           min_tokens);
  if (!allowed_tokens.empty() && std::includes(end_tokens.begin(), end_tokens.end(),
                                               allowed_tokens.begin(), allowed_tokens.end()))
    return InvalidArgument(
        "min_tokens {}: each of the {} allowed tokens ends the answer: allow another one, or lower "
        "min_tokens to 0",
        min_tokens, allowed_tokens.size());
  return OkStatus();
}

bool SamplingParams::EndsAnswer(TokenId id) const {
  return std::binary_search(end_tokens.begin(), end_tokens.end(), id);
}

}  // namespace quire
