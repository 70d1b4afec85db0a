#include "engine/sampler.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/errors.h"
#include "base/philox.h"

namespace quire {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

constexpr double kTwo52 = 4503599627370496.0;

// exp(x) for x <= 0, within 2 units in the last place; below -700 that of -700 (1e-304), which is
// nothing beside 1. Only + - * and integer steps, so every machine and every vector width gives
// the same bits (-ffp-contract=off).
inline double ExpOfNegative(double x) {
  constexpr double kLog2E = 1.4426950408889634;
  constexpr double kLn2High = 0.693147180369123816490;  // 33 bits: n * kLn2High is exact
  constexpr double kLn2Low = 1.90821492927058770002e-10;
  constexpr double kRound = 1.5 * kTwo52;  // the low bits of x + kRound are x rounded
  // 1/13!, 1/12!, ... 1/0!: the next term is below 2^-57 for |r| <= ln 2 / 2.
  constexpr double kTerms[] = {1.0 / 6227020800,
                               1.0 / 479001600,
                               1.0 / 39916800,
                               1.0 / 3628800,
                               1.0 / 362880,
                               1.0 / 40320,
                               1.0 / 5040,
                               1.0 / 720,
                               1.0 / 120,
                               1.0 / 24,
                               1.0 / 6,
                               1.0 / 2,
                               1.0,
                               1.0};
  const double clamped = x < -700.0 ? -700.0 : x;
  const double shifted = clamped * kLog2E + kRound;
  const double n = shifted - kRound;
  const double r = (clamped - n * kLn2High) - n * kLn2Low;
  double sum = kTerms[0];
  for (int i = 1; i < 14; ++i) sum = sum * r + kTerms[i];
  // n sits in the low bits of `shifted`; 2^n is built in the exponent field.
  return sum * std::bit_cast<double>((std::bit_cast<uint64_t>(shifted) + 1023) << 52);
}

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

// ln(x) for x >= 1, by Halley's steps on our own exp: same bits everywhere, unlike std::log.
double Log(double x) {
  int exponent = 0;
  double y = std::frexp(x, &exponent);  // [1/2, 1)
  y = 0.6931471805599453 * exponent + (y - 1.0);
  for (int i = 0; i < 4; ++i) {
    const double ratio = x * ExpOfNegative(-y);
    y += 2.0 * (ratio - 1.0) / (ratio + 1.0);
  }
  return y;
}

uint64_t RandomBits(uint64_t seed, uint32_t choice, uint64_t position) {
  const auto words = Philox4x32(
      {static_cast<uint32_t>(position), static_cast<uint32_t>(position >> 32), choice, 0},
      {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  return uint64_t{words[1]} << 32 | words[0];
}

// The lowest id with the largest logit.
StatusOr<TokenId> BestToken(std::span<const float> logits) {
  float best = -kInfinity;
  size_t id = 0;
  bool has_nan = false;
  for (size_t i = 0; i < logits.size(); ++i) {
    has_nan |= std::isnan(logits[i]);
    if (logits[i] > best) {
      best = logits[i];
      id = i;
    }
  }
  if (has_nan)
    id = std::find_if(logits.begin(), logits.end(), [](float x) { return std::isnan(x); }) -
         logits.begin();
  if (has_nan || best == kInfinity)
    return NonFinite("the logit of token {} is {}: the model's numbers overflowed", id, logits[id]);
  if (best == -kInfinity)
    return NonFinite("all {} logits are minus infinity: no token is left to choose", logits.size());
  return static_cast<TokenId>(id);
}

double LogProb(std::span<const float> logits, TokenId best, TokenId id) {
  constexpr size_t kBlock = 64;  // exps in blocks, so that the compiler can use vectors
  double exps[kBlock];
  const double best_logit = logits[best];
  double sum = 0;  // by rising id, one order
  for (size_t begin = 0; begin < logits.size(); begin += kBlock) {
    const size_t block_len = std::min(kBlock, logits.size() - begin);
    for (size_t i = 0; i < block_len; ++i)
      exps[i] = ExpOfNegative(double{logits[begin + i]} - best_logit);
    for (size_t i = 0; i < block_len; ++i) sum += exps[i];
  }
  return (double{logits[id]} - best_logit) - Log(sum);
}

}  // namespace

Status SamplingParams::Validate() const {
  // Written so that NaN fails.
  if (!(temperature >= 0.0f && temperature <= 2.0f))
    return InvalidArgument("temperature {}: need 0 to 2", temperature);
  if (top_k < -1) return InvalidArgument("top_k {}: need 1 or more, or 0 or -1 for off", top_k);
  if (!(top_p >= 0.0f && top_p <= 1.0f)) return InvalidArgument("top_p {}: need 0 to 1", top_p);
  if (!(min_p >= 0.0f && min_p <= 1.0f)) return InvalidArgument("min_p {}: need 0 to 1", min_p);
  return OkStatus();
}

Sampler::Sampler(uint32_t num_tokens)
    : num_tokens_(num_tokens),
      // All weights together stay below 2^62; with 262,144 tokens this is 2^43.
      weight_one_(std::ldexp(1.0, std::min(51, 62 - static_cast<int>(std::bit_width(num_tokens))))),
      weights_(num_tokens, 0) {
  QUIRE_CHECK(num_tokens > 0);
  kept_logits_.reserve(num_tokens);
  kept_ids_.reserve(num_tokens);
  rank_.reserve(num_tokens);
}

StatusOr<SampledToken> Sampler::Sample(std::span<const float> logits, const SamplingParams& params,
                                       uint64_t position, uint32_t choice) {
  if (logits.size() < num_tokens_)
    return InvalidArgument("a row of {} logits, the vocabulary has {} tokens", logits.size(),
                           num_tokens_);
  const std::span<const float> row = logits.first(num_tokens_);
  QUIRE_ASSIGN_OR_RETURN(const TokenId best, BestToken(row));
  SampledToken token{.id = best};
  if (!params.is_greedy())
    token.id = Draw(row, best, params, RandomBits(params.seed, choice, position));
  if (params.want_logprob) token.logprob = LogProb(row, best, token.id);
  return token;
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
