#include "cli/position_bits.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "engine/answer.h"
#include "engine/logprobs.h"

namespace quire {
namespace {

bool HaveSameBits(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}

}  // namespace

PositionBits BitsOf(uint32_t position, std::span<const float> logits, uint32_t num_tokens,
                    TokenId next) {
  PositionBits bits{.position = position, .hash = HashOfLogits(logits)};
  const auto tokens = logits.first(num_tokens);
  if (std::any_of(tokens.begin(), tokens.end(), [](float value) { return std::isnan(value); })) {
    bits.logprob = std::numeric_limits<double>::quiet_NaN();
    return bits;
  }
  Logprobs logprobs;
  const auto best = std::max_element(tokens.begin(), tokens.end()) - tokens.begin();
  FillLogprobs(tokens, static_cast<TokenId>(best), next, 0, logprobs);
  bits.logprob = logprobs.sampled;
  return bits;
}

std::string FirstDifference(std::span<const PositionBits> want, std::span<const PositionBits> got) {
  for (const PositionBits& row : got) {
    QUIRE_CHECK(row.position < want.size() && want[row.position].position == row.position);
    const PositionBits& other = want[row.position];
    if (row.hash == other.hash && HaveSameBits(row.logprob, other.logprob)) continue;
    return fmt::format(
        "the logits of position {} differ: log-probability of the next token {:.17g} in place of "
        "{:.17g}",
        row.position, row.logprob, other.logprob);
  }
  return {};
}

std::string FirstDifference(const AnswerBits& want, const AnswerBits& got) {
  const size_t both = std::min(want.ids.size(), got.ids.size());
  for (size_t i = 0; i < both; ++i) {
    if (want.ids[i] != got.ids[i])
      return fmt::format("token {} of the answer is {} in place of {}", i, got.ids[i], want.ids[i]);
    if (want.hashes[i] != got.hashes[i] || !HaveSameBits(want.logprobs[i], got.logprobs[i]))
      return fmt::format(
          "the logits of token {} of the answer differ: its log-probability is {:.17g} in place of "
          "{:.17g}",
          i, got.logprobs[i], want.logprobs[i]);
  }
  if (want.ids.size() != got.ids.size())
    return fmt::format("the answer has {} tokens in place of {}", got.ids.size(), want.ids.size());
  return {};
}

}  // namespace quire
