#include "engine/sampler.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/errors.h"
#include "base/philox.h"
#include "engine/exp_log.h"
#include "engine/logit_adjustment.h"

namespace quire {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// exp((logit - best) / temperature) in units of 1 / weight_one, rounded. Requires: weight_one <=
// 2^51, so that the low 52 bits of the sum with 2^52 are the whole number.
void FillWeights(std::span<const float> logits, double best, double temperature, double weight_one,
                 std::span<uint64_t> weights) {
  constexpr uint64_t kLow52 = (uint64_t{1} << 52) - 1;
  for (size_t i = 0; i < logits.size(); ++i) {
    const double weight = ExpOfNegative((double{logits[i]} - best) / temperature) * weight_one;
    weights[i] = std::bit_cast<uint64_t>(weight + kTwo52) & kLow52;
  }
}

uint64_t RandomBits(uint64_t seed, uint32_t choice, uint64_t position) {
  const auto words = Philox4x32(
      {static_cast<uint32_t>(position), static_cast<uint32_t>(position >> 32), choice, 0},
      {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  return uint64_t{words[1]} << 32 | words[0];
}

// The lowest id with the largest logit. Requires: no NaN.
TokenId BestToken(std::span<const float> logits) {
  float best = logits[0];
  size_t id = 0;
  for (size_t i = 1; i < logits.size(); ++i) {
    if (logits[i] > best) {
      best = logits[i];
      id = i;
    }
  }
  return static_cast<TokenId>(id);
}

// The same for a row of the model, which may be anything.
StatusOr<TokenId> CheckedBestToken(std::span<const float> logits) {
  bool has_nan = false;
  for (const float logit : logits) has_nan |= std::isnan(logit);
  TokenId best = 0;
  if (has_nan) {
    const auto first_nan =
        std::find_if(logits.begin(), logits.end(), [](float x) { return std::isnan(x); });
    best = static_cast<TokenId>(first_nan - logits.begin());
  } else {
    best = BestToken(logits);
  }
  if (has_nan || logits[best] == kInfinity)
    return NonFinite("the logit of token {} is {}: the model's numbers overflowed", best,
                     logits[best]);
  if (logits[best] == -kInfinity)
    return NonFinite("all {} logits are minus infinity: no token is left to choose", logits.size());
  return best;
}

}  // namespace

Sampler::Sampler(uint32_t num_tokens)
    : num_tokens_(num_tokens),
      // All weights together stay below 2^62; with 262,144 tokens this is 2^43.
      weight_one_(std::ldexp(1.0, std::min(51, 62 - static_cast<int>(std::bit_width(num_tokens))))),
      adjusted_(num_tokens, 0),
      weights_(num_tokens, 0) {
  QUIRE_CHECK(num_tokens > 0);
  kept_logits_.reserve(num_tokens);
  kept_ids_.reserve(num_tokens);
  rank_.reserve(num_tokens);
}

StatusOr<SampledToken> Sampler::Sample(std::span<const float> logits, const SamplingParams& params,
                                       const SamplerState& state, uint64_t position,
                                       uint32_t choice) {
  if (logits.size() < num_tokens_)
    return InvalidArgument("a row of {} logits, the vocabulary has {} tokens", logits.size(),
                           num_tokens_);
  const std::span<const float> raw = logits.first(num_tokens_);
  QUIRE_ASSIGN_OR_RETURN(const TokenId raw_best, CheckedBestToken(raw));
  std::span<const float> row = raw;
  TokenId best = raw_best;
  if (NeedsAdjustment(params, state)) {
    AdjustLogits(raw, params, state, adjusted_);
    row = adjusted_;
    best = BestToken(row);
    if (row[best] == -kInfinity)
      return NonFinite("the logits of all tokens that the request leaves are minus infinity");
  }
  SampledToken token{.id = best};
  if (!params.is_greedy())
    token.id = Draw(row, best, params, RandomBits(params.seed, choice, position));
  if (params.top_logprobs.has_value())
    FillLogprobs(raw, raw_best, token.id, static_cast<uint32_t>(*params.top_logprobs),
                 token.logprobs);
  return token;
}

StatusOr<Logprobs> Sampler::Score(std::span<const float> logits, TokenId token,
                                  uint32_t num_top) const {
  const std::span<const float> row = logits.first(num_tokens_);
  QUIRE_ASSIGN_OR_RETURN(const TokenId best, CheckedBestToken(row));
  Logprobs logprobs;
  FillLogprobs(row, best, token, num_top, logprobs);
  return logprobs;
}

TokenId Sampler::Draw(std::span<const float> logits, TokenId best, const SamplingParams& params,
                      uint64_t random) {
  // From here a token is its place in `kept`, which rises with its id.
  const bool has_top_k = params.top_k > 0 && static_cast<uint32_t>(params.top_k) < num_tokens_;
  if (has_top_k) KeepTopK(logits, static_cast<uint32_t>(params.top_k));
  const std::span<const float> kept = has_top_k ? std::span<const float>(kept_logits_) : logits;
  const std::span<uint64_t> weights(weights_.data(), kept.size());
  FillWeights(kept, logits[best], params.temperature, weight_one_, weights);

  if (params.top_p < 1.0f) {
    const Candidate last = LastOfTopP(kept, weights, params.top_p);
    for (size_t i = 0; i < kept.size(); ++i)
      if (kept[i] < last.logit || (kept[i] == last.logit && i > static_cast<size_t>(last.id)))
        weights[i] = 0;
  }
  const auto least_weight = static_cast<uint64_t>(std::ceil(double{params.min_p} * weight_one_));
  uint64_t mass = 0;  // at least weight_one_: the best is never dropped
  for (uint64_t& weight : weights) {
    weight = weight < least_weight ? 0 : weight;
    mass += weight;
  }

  // Uniform in [0, mass): the high half of a 128-bit product. Its bias is below mass / 2^64.
  auto rest = static_cast<uint64_t>(static_cast<unsigned __int128>(random) * mass >> 64);
  for (size_t i = 0; i < weights.size(); ++i) {
    if (rest < weights[i]) return has_top_k ? kept_ids_[i] : static_cast<TokenId>(i);
    rest -= weights[i];
  }
  return best;  // not reached: rest < mass
}

void Sampler::KeepTopK(std::span<const float> logits, uint32_t k) {
  // A heap of the k best so far, the worst of them in front.
  rank_.clear();
  for (uint32_t i = 0; i < k; ++i)
    rank_.push_back({.logit = logits[i], .id = static_cast<TokenId>(i), .weight = 0});
  std::make_heap(rank_.begin(), rank_.end(), RanksBefore);
  for (size_t i = k; i < logits.size(); ++i) {
    if (logits[i] <= rank_.front().logit) continue;  // of equal ones the lower id stays
    std::pop_heap(rank_.begin(), rank_.end(), RanksBefore);
    rank_.back() = {.logit = logits[i], .id = static_cast<TokenId>(i), .weight = 0};
    std::push_heap(rank_.begin(), rank_.end(), RanksBefore);
  }
  std::sort(rank_.begin(), rank_.end(),
            [](const Candidate& a, const Candidate& b) { return a.id < b.id; });
  kept_logits_.clear();
  kept_ids_.clear();
  for (const Candidate& candidate : rank_) {
    kept_logits_.push_back(candidate.logit);
    kept_ids_.push_back(candidate.id);
  }
}

Sampler::Candidate Sampler::LastOfTopP(std::span<const float> kept,
                                       std::span<const uint64_t> weights, float top_p) {
  uint64_t total = 0;
  for (const uint64_t w : weights) total += w;
  const auto wanted =
      std::min(total, static_cast<uint64_t>(std::ceil(double{top_p} * static_cast<double>(total))));
  // All tokens lighter than this together weigh less than total - wanted: none is needed.
  const uint64_t least_weight = std::max<uint64_t>(1, (total - wanted) / kept.size());
  rank_.clear();
  for (size_t i = 0; i < kept.size(); ++i)
    if (weights[i] >= least_weight) rank_.push_back({kept[i], static_cast<TokenId>(i), weights[i]});

  // Halves the part that the answer is in: linear on average. `weight` is that of [0, begin).
  uint64_t weight = 0;
  auto begin = rank_.begin();
  auto end = rank_.end();
  while (end - begin > 32) {
    const auto middle = begin + (end - begin) / 2;
    std::nth_element(begin, middle, end, RanksBefore);
    uint64_t first_half = 0;
    for (auto it = begin; it != middle; ++it) first_half += it->weight;
    if (weight + first_half >= wanted) {
      end = middle;
    } else {
      weight += first_half;
      begin = middle;
    }
  }
  std::sort(begin, end, RanksBefore);
  for (auto it = begin; it != end; ++it) {
    weight += it->weight;
    if (weight >= wanted) return *it;
  }
  return *(end - 1);
}

}  // namespace quire
