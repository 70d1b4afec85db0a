#include "engine/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "base/fnv.h"

namespace quire {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

const SamplingParams kOff{.temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0};

TokenId SampleId(Sampler& sampler, const std::vector<float>& logits, const SamplingParams& params,
                 uint64_t position = 0, uint32_t choice = 0) {
  auto token = sampler.Sample(logits, params, SamplerState(), position, choice);
  EXPECT_TRUE(token.ok()) << token.status().message();
  return token.ok() ? token->id : -1;
}

std::vector<float> RandomLogits(uint32_t seed, size_t num_tokens, float spread) {
  std::mt19937 random(seed);
  std::vector<float> logits(num_tokens);
  for (float& logit : logits)
    logit = spread * (static_cast<float>(random() % 100001) / 50000.0f - 1.0f);
  return logits;
}

// The reference: sorts everything, uses the library's exp, sums in long double.
std::vector<double> Probabilities(const std::vector<float>& logits, const SamplingParams& params) {
  std::vector<size_t> order(logits.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return logits[a] > logits[b]; });
  const double best = logits[order[0]];
  const auto weight = [&](size_t id) -> double {
    return std::exp((logits[id] - best) / params.temperature);
  };
  size_t num_kept = order.size();
  if (params.top_k > 0) num_kept = std::min(num_kept, static_cast<size_t>(params.top_k));
  long double total = 0;
  for (size_t i = 0; i < num_kept; ++i) total += weight(order[i]);
  if (params.top_p < 1) {
    long double mass = 0;
    size_t i = 0;
    do mass += weight(order[i++]);
    while (i < num_kept && mass < params.top_p * total);
    num_kept = i;
  }
  while (num_kept > 1 && weight(order[num_kept - 1]) < params.min_p) --num_kept;
  total = 0;
  for (size_t i = 0; i < num_kept; ++i) total += weight(order[i]);
  std::vector<double> probabilities(logits.size(), 0);
  for (size_t i = 0; i < num_kept; ++i)
    probabilities[order[i]] = static_cast<double>(weight(order[i]) / total);
  return probabilities;
}

// Pearson's statistic over `num_draws` positions as a standard normal score (Wilson and Hilferty,
// PNAS 1931: the cube root of X2 / f is near normal for f degrees of freedom). Tokens with an
// expected count under 5 are taken together. Infinite if a token of probability 0 was drawn.
double ChiSquareScore(const std::vector<float>& logits, const SamplingParams& params,
                      int num_draws) {
  Sampler sampler(static_cast<uint32_t>(logits.size()));
  std::vector<int> counts(logits.size(), 0);
  for (int i = 0; i < num_draws; ++i) ++counts[SampleId(sampler, logits, params, i)];
  const std::vector<double> probabilities = Probabilities(logits, params);
  double statistic = 0, rest_expected = 0, rest_count = 0;
  int num_cells = 0;
  const auto add_cell = [&](double count, double expected) {
    statistic += (count - expected) * (count - expected) / expected;
    ++num_cells;
  };
  for (size_t id = 0; id < logits.size(); ++id) {
    const double expected = probabilities[id] * num_draws;
    if (expected == 0 && counts[id] > 0) return kInfinity;
    if (expected >= 5) {
      add_cell(counts[id], expected);
    } else {
      rest_expected += expected;
      rest_count += counts[id];
    }
  }
  if (rest_expected >= 5) add_cell(rest_count, rest_expected);
  const double freedom = num_cells - 1;
  if (freedom < 1) return 0;
  const double variance = 2 / (9 * freedom);
  return (std::cbrt(statistic / freedom) - (1 - variance)) / std::sqrt(variance);
}

// A right sampler exceeds 5 standard deviations of the chi-square with a probability below 1e-4 at
// these degrees of freedom, and the seeds are fixed. A token kept or dropped wrongly gives far
// more.
TEST(Sampler, DrawsFollowTheExactProbabilities) {
  const std::vector<SamplingParams> all = {
      kOff,
      {.temperature = 0.5f, .top_k = 0, .top_p = 1, .min_p = 0, .seed = 1},
      {.temperature = 2, .top_k = -1, .top_p = 1, .min_p = 0, .seed = 2},
      {.temperature = 1, .top_k = 5, .top_p = 1, .min_p = 0, .seed = 3},
      {.temperature = 1, .top_k = 0, .top_p = 0.7f, .min_p = 0, .seed = 4},
      {.temperature = 1, .top_k = 0, .top_p = 0.999f, .min_p = 0, .seed = 5},
      {.temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0.2f, .seed = 6},
      {.temperature = 0.9f, .top_k = 20, .top_p = 0.9f, .min_p = 0.05f, .seed = 7},
      {}};
  for (size_t num_tokens : {2u, 7u, 50u, 400u})
    for (const SamplingParams& params : all) {
      const std::vector<float> logits =
          RandomLogits(static_cast<uint32_t>(num_tokens), num_tokens, 3);
      EXPECT_LT(ChiSquareScore(logits, params, 8000), 4.5)
          << num_tokens << " tokens, seed " << params.seed;
    }
}

// Many equal logits: the cuts fall inside ties, where the lower ids stay.
TEST(Sampler, DrawsFollowTheExactProbabilitiesAmongTies) {
  std::vector<float> logits(300);
  for (size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<float>(i * 7 % 3);
  for (const SamplingParams& params :
       {SamplingParams{.temperature = 1, .top_k = 130, .top_p = 1, .min_p = 0},
        SamplingParams{.temperature = 1, .top_k = 0, .top_p = 0.5f, .min_p = 0},
        SamplingParams{.temperature = 1, .top_k = 150, .top_p = 0.9f, .min_p = 0}})
    EXPECT_LT(ChiSquareScore(logits, params, 8000), 4.5) << params.top_k << " " << params.top_p;
}

// Draws until every kept token of a small set must have come up: 60 tokens of equal weight miss one
// in 2,000 draws with a probability of 60 (59/60)^2000 < 1e-12.
TEST(Sampler, ExactlyTheKeptTokensComeUp) {
  const auto drawn = [](const std::vector<float>& logits, const SamplingParams& params) {
    Sampler sampler(static_cast<uint32_t>(logits.size()));
    std::vector<TokenId> ids;
    for (int i = 0; i < 2000; ++i) ids.push_back(SampleId(sampler, logits, params, i));
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    return ids;
  };
  std::vector<TokenId> first_60(60);
  std::iota(first_60.begin(), first_60.end(), 0);
  const std::vector<float> equal(100, 1.5f);
  EXPECT_EQ(drawn(equal, {.temperature = 1, .top_k = 60, .top_p = 1, .min_p = 0}), first_60);
  // 0.595: between the masses of 59 and of 60 tokens of 1/100.
  EXPECT_EQ(drawn(equal, {.temperature = 1, .top_k = 0, .top_p = 0.595f, .min_p = 0}), first_60);
  // Probabilities 0.5, 0.25, 0.125, ...: min_p 0.2 keeps ratios 1, 1/2 and 1/4.
  std::vector<float> halves(30);
  for (size_t i = 0; i < halves.size(); ++i) halves[i] = -static_cast<float>(i) * 0.6931472f;
  EXPECT_EQ(drawn(halves, {.temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0.2f}),
            (std::vector<TokenId>{0, 1, 2}));
  EXPECT_EQ(drawn(halves, {.temperature = 1, .top_k = 0, .top_p = 0.8f, .min_p = 0}),
            (std::vector<TokenId>{0, 1, 2}));
  // top_p counts what top_k left: 2/3 and 1/3.
  EXPECT_EQ(drawn(halves, {.temperature = 1, .top_k = 2, .top_p = 0.6f, .min_p = 0}),
            (std::vector<TokenId>{0}));
}

// MAT-16.
TEST(Sampler, TinyTemperaturesAreGreedy) {
  const std::vector<float> logits = {1, 5, 4.9999f, 5, -3};
  for (float temperature : {0.0f, 1e-9f, 1e-38f, 1e-45f, 9e-6f})
    for (float top_p : {0.5f, 1.0f})
      for (uint64_t position = 0; position < 50; ++position) {
        Sampler sampler(5);
        const SamplingParams params{.temperature = temperature, .top_p = top_p, .top_logprobs = 0};
        auto token = sampler.Sample(logits, params, SamplerState(), position);
        ASSERT_TRUE(token.ok());
        EXPECT_EQ(token->id, 1);
        EXPECT_TRUE(std::isfinite(token->logprobs.sampled));
      }
}

// MAT-17.
TEST(Sampler, TheBestTokenStaysWhateverIsCut) {
  const std::vector<float> logits = RandomLogits(1, 200, 4);
  const auto best =
      static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  Sampler sampler(200);
  for (int position = 0; position < 200; ++position) {
    EXPECT_EQ(SampleId(sampler, logits, {.top_k = 0, .top_p = 0, .min_p = 0}, position), best);
    EXPECT_EQ(SampleId(sampler, logits, {.top_k = -1, .top_p = 1, .min_p = 1}, position), best);
    EXPECT_EQ(SampleId(sampler, logits, {.top_k = 1, .top_p = 1, .min_p = 0}, position), best);
    EXPECT_EQ(SampleId(sampler, logits, {.top_k = 0, .top_p = 0, .min_p = 1}, position), best);
  }
}

TEST(Sampler, TopKZeroAndMinusOneAndTheWholeVocabularyAreTheSame) {
  const std::vector<float> logits = RandomLogits(2, 150, 3);
  Sampler sampler(150);
  for (float top_p : {0.9f, 1.0f})
    for (int position = 0; position < 300; ++position) {
      SamplingParams params{.temperature = 1, .top_k = 0, .top_p = top_p, .min_p = 0};
      const TokenId off = SampleId(sampler, logits, params, position);
      for (int32_t top_k : {-1, 150, 1000000}) {
        params.top_k = top_k;
        EXPECT_EQ(SampleId(sampler, logits, params, position), off) << top_k;
      }
    }
}

// MAT-18.
TEST(Sampler, TheLowestIdWinsTies) {
  Sampler sampler(400);
  std::vector<float> logits(400, 0.0f);
  EXPECT_EQ(SampleId(sampler, logits, {.temperature = 0}), 0);
  EXPECT_EQ(SampleId(sampler, logits, {.top_k = 1}), 0);
  EXPECT_EQ(SampleId(sampler, logits, {.top_k = 0, .top_p = 0}), 0);
  logits[7] = logits[300] = 2;
  EXPECT_EQ(SampleId(sampler, logits, {.temperature = 0}), 7);
  EXPECT_EQ(SampleId(sampler, logits, {.top_k = 1}), 7);
  EXPECT_EQ(SampleId(sampler, logits, {.top_k = 0, .top_p = 0}), 7);
  logits.assign(400, -0.0f);
  logits[9] = 0.0f;  // equal to -0
  EXPECT_EQ(SampleId(sampler, logits, {.temperature = 0}), 0);
}

TEST(Sampler, ParamsOutsideTheirRangesAreNamed) {
  EXPECT_TRUE(SamplingParams{}.Validate().ok());
  EXPECT_TRUE(kOff.Validate().ok());
  for (int32_t top_k : {-1, 0, 1, 2147483647})
    EXPECT_TRUE(SamplingParams{.top_k = top_k}.Validate().ok());
  EXPECT_EQ(SamplingParams{.top_k = -2}.Validate().message(),
            "top_k -2: need 1 or more, or 0 or -1 for off");
  for (float bad : {-0.1f, 2.1f, kNan, kInfinity, -kInfinity}) {
    EXPECT_EQ(SamplingParams{.temperature = bad}.Validate().code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(SamplingParams{.top_p = bad}.Validate().code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(SamplingParams{.min_p = bad}.Validate().code(), StatusCode::kInvalidArgument);
  }
}

TEST(Sampler, NanAndInfinityAreErrorsThatNameTheToken) {
  Sampler sampler(3);
  EXPECT_EQ(
      sampler.Sample(std::vector<float>{1, kNan, 9}, {}, SamplerState(), 0).status().message(),
      "the logit of token 1 is nan: the model's numbers overflowed");
  EXPECT_EQ(
      sampler.Sample(std::vector<float>{kInfinity, 1, 1}, {}, SamplerState(), 0).status().code(),
      StatusCode::kNonFinite);
  EXPECT_EQ(
      sampler.Sample(std::vector<float>{kInfinity, 1, kNan}, {}, SamplerState(), 0).status().code(),
      StatusCode::kNonFinite);
  EXPECT_EQ(
      sampler.Sample(std::vector<float>(3, -kInfinity), {}, SamplerState(), 0).status().code(),
      StatusCode::kNonFinite);
  EXPECT_EQ(sampler.Sample(std::vector<float>{1, 2}, {}, SamplerState(), 0).status().code(),
            StatusCode::kInvalidArgument);
}

TEST(Sampler, ExtremeLogitsKeepTheirMeaning) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  for (const SamplingParams& params : {kOff, SamplingParams{}, SamplingParams{.top_k = 2}}) {
    Sampler sampler(4);
    for (int position = 0; position < 100; ++position) {
      EXPECT_EQ(SampleId(sampler, {-1e30f, 1e30f, 0, -kInfinity}, params, position), 1);
      EXPECT_EQ(
          SampleId(sampler, {-kInfinity, -kInfinity, -kLargest, -kInfinity}, params, position), 2);
      EXPECT_EQ(SampleId(sampler, {-kLargest, kLargest, -kInfinity, 0}, params, position), 1);
    }
  }
  Sampler sampler(4);
  SamplingParams params = kOff;
  params.top_logprobs = 0;
  auto token = sampler.Sample(std::vector<float>{-1e30f, 1e30f, 1e30f, -kInfinity}, params,
                              SamplerState(), 0);
  ASSERT_TRUE(token.ok());
  EXPECT_NEAR(token->logprobs.sampled, -std::log(2.0), 4e-16);  // 2 units in the last place of ln 2
}

TEST(Sampler, PaddingRowsAreNeverSampled) {
  Sampler sampler(3);
  std::vector<float> logits = {0, 1, 0, 50, kNan, kInfinity};
  for (const SamplingParams& params :
       {kOff, SamplingParams{}, SamplingParams{.temperature = 0}, SamplingParams{.top_k = 100}})
    for (int position = 0; position < 100; ++position)
      EXPECT_LT(SampleId(sampler, logits, params, position), 3);
}

TEST(Sampler, TheTokenDependsOnSeedChoiceAndPositionOnly) {
  const std::vector<float> logits = RandomLogits(3, 1000, 1);
  Sampler first(1000), second(1000);
  std::vector<TokenId> forward, backward;
  for (int position = 0; position < 100; ++position)
    forward.push_back(SampleId(first, logits, kOff, position));
  for (int position = 99; position >= 0; --position) {
    (void)SampleId(second, RandomLogits(4, 1000, 9), {}, position);  // a neighbour in between
    backward.push_back(SampleId(second, logits, kOff, position));
  }
  std::reverse(backward.begin(), backward.end());
  EXPECT_EQ(forward, backward);

  // Another choice or seed gives another stream: of 100 draws among 1,000 near-equal tokens a few
  // at most agree.
  int num_same_choice = 0, num_same_seed = 0;
  SamplingParams other_seed = kOff;
  other_seed.seed = uint64_t{1} << 63;
  for (int position = 0; position < 100; ++position) {
    num_same_choice += SampleId(first, logits, kOff, position, 1) == forward[position];
    num_same_seed += SampleId(first, logits, other_seed, position) == forward[position];
  }
  EXPECT_LE(num_same_choice, 5);
  EXPECT_LE(num_same_seed, 5);
}

// Sampling again without a commit, as after a preemption, gives the same token; a token that was
// committed is not forgotten.
TEST(Sampler, PenaltiesDependOnTheCommittedTokensOnly) {
  const std::vector<float> logits = {3, 2, 1};
  const SamplingParams params{.temperature = 0, .presence_penalty = 1.5f};
  Sampler sampler(3);
  SamplerState state(params, 3);
  const auto next = [&] { return sampler.Sample(logits, params, state, 0).value().id; };
  EXPECT_EQ(next(), 0);
  EXPECT_EQ(next(), 0);
  state.Commit(0);  // 1.5, 2, 1
  EXPECT_EQ(next(), 1);
  state.Commit(1);  // 1.5, 0.5, 1
  EXPECT_EQ(next(), 0);
}

TEST(Sampler, OnlyAllowedTokensComeUpAndTheFiltersSeeNoOthers) {
  SamplingParams params{.temperature = 1, .top_k = 2, .top_p = 1, .min_p = 0.5f};
  params.allowed_tokens = {3, 5, 8};
  params.logit_bias = {{8, 0.5f}};
  ASSERT_TRUE(params.Prepare(10, {}).ok());
  const std::vector<float> logits = {9, 9, 9, 1, 9, -1, 9, 9, 0.5f, 9};
  Sampler sampler(10);
  std::vector<int> counts(10, 0);
  for (int i = 0; i < 2000; ++i)
    ++counts[sampler.Sample(logits, params, SamplerState(), i).value().id];
  EXPECT_EQ(counts[3] + counts[8], 2000);
  EXPECT_NEAR(counts[3], 1000, 5 * std::sqrt(500));  // 5 standard deviations of 1/2
}

TEST(Sampler, EndTokensDoNotComeUpBeforeMinTokens) {
  SamplingParams params{.temperature = 0, .min_tokens = 2, .stop_tokens = {1}};
  ASSERT_TRUE(params.Prepare(4, std::vector<TokenId>{2}).ok());
  Sampler sampler(4);
  SamplerState state(params, 4);
  const std::vector<float> logits = {0, 8, 9, 1};
  for (const TokenId expected : {3, 3, 2}) {
    EXPECT_EQ(sampler.Sample(logits, params, state, 0).value().id, expected);
    state.Commit(expected);
  }
}

TEST(Sampler, ARowThatLeavesTheRequestNothingIsAnError) {
  SamplingParams params;
  params.allowed_tokens = {0, 2};
  ASSERT_TRUE(params.Prepare(3, {}).ok());
  const auto token =
      Sampler(3).Sample(std::vector<float>{-kInfinity, 1, -kInfinity}, params, SamplerState(), 0);
  EXPECT_EQ(token.status().code(), StatusCode::kNonFinite);
}

// Ids that every compiler and machine must give: FNV-1a over 64 draws for each of four settings.
TEST(Sampler, TheStreamIsTheSameOnEveryMachine) {
  const std::vector<float> logits = RandomLogits(5, 5000, 8);
  Sampler sampler(5000);
  uint64_t hash = kFnvStart;
  for (const SamplingParams& params :
       {kOff, SamplingParams{.seed = 42}, SamplingParams{.top_k = 0, .top_p = 0.8f, .min_p = 0},
        SamplingParams{.temperature = 2, .top_k = 0, .top_p = 1, .min_p = 0.01f}})
    for (int position = 0; position < 64; ++position)
      hash = FnvStep(hash, static_cast<uint64_t>(SampleId(sampler, logits, params, position)));
  EXPECT_EQ(hash, 3588236888492636521u);
}

TEST(Sampler, LogProbIsTheLogSoftmaxOfTheRawLogits) {
  for (uint32_t num_tokens : {1u, 2u, 100u, 30000u}) {
    const std::vector<float> logits = RandomLogits(num_tokens, num_tokens, 12);
    long double sum = 0;
    for (float logit : logits) sum += std::exp(static_cast<long double>(logit));
    Sampler sampler(num_tokens);
    for (int position = 0; position < 20; ++position) {
      SamplingParams params{.temperature = 1.7f, .top_k = 0, .top_logprobs = 0};
      auto token = sampler.Sample(logits, params, SamplerState(), position);
      ASSERT_TRUE(token.ok());
      const double expected = static_cast<double>(logits[token->id] - std::log(sum));
      // Each term errs by 2 units of 2^-53 and each addition by one; then log and a subtraction of
      // numbers below 64.
      const double bound = (2.0 + num_tokens + 4 * 64) * std::ldexp(1.0, -53);
      EXPECT_NEAR(token->logprobs.sampled, expected, bound) << num_tokens;
    }
  }
}

}  // namespace
}  // namespace quire
