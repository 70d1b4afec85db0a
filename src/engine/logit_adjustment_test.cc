#include "engine/logit_adjustment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <vector>

namespace quire {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kLargest = std::numeric_limits<float>::max();

std::vector<float> Adjusted(const std::vector<float>& logits, const SamplingParams& params,
                            const SamplerState& state) {
  std::vector<float> adjusted(logits.size(), -1234.0f);
  AdjustLogits(logits, params, state, adjusted);
  return adjusted;
}

SamplingParams Prepared(SamplingParams params, uint32_t num_tokens,
                        std::vector<TokenId> ends = {}) {
  const Status status = params.Prepare(num_tokens, ends);
  EXPECT_TRUE(status.ok()) << status.message();
  return params;
}

// One step after the other over the whole row, in double.
std::vector<double> Reference(const std::vector<float>& logits, const SamplingParams& params,
                              const std::vector<TokenId>& generated) {
  std::vector<double> row(logits.begin(), logits.end());
  std::map<TokenId, int> counts;
  for (const TokenId id : generated) ++counts[id];
  for (size_t i = 0; i < row.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    const auto among = [&](const std::vector<TokenId>& ids) {
      return std::find(ids.begin(), ids.end(), id) != ids.end();
    };
    const bool may_end = generated.size() >= params.min_tokens;
    if ((!params.allowed_tokens.empty() && !among(params.allowed_tokens)) ||
        (!may_end && among(params.end_tokens))) {
      row[i] = -kInfinity;
      continue;
    }
    for (const LogitBias& bias : params.logit_bias)
      if (bias.id == id) row[i] += bias.bias;
    if (!counts.contains(id)) continue;
    if (row[i] > 0) {
      row[i] /= params.repetition_penalty;
    } else {
      row[i] *= params.repetition_penalty;
    }
    row[i] -= params.frequency_penalty * counts[id];
    row[i] -= params.presence_penalty;
  }
  return row;
}

TEST(LogitAdjustment, EqualsThePlainReference) {
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    std::mt19937 random(seed);
    const auto real = [&](double least, double most) {
      return static_cast<float>(least +
                                (most - least) * static_cast<double>(random()) / 4294967296);
    };
    const uint32_t num_tokens = 1 + random() % 60;
    const auto some_ids = [&](uint32_t most) {
      std::vector<TokenId> ids;
      for (uint32_t i = random() % (most + 1); i > 0; --i)
        ids.push_back(static_cast<TokenId>(random() % num_tokens));
      return ids;
    };
    SamplingParams params;
    if (random() % 2 == 0) params.presence_penalty = real(-2, 2);
    if (random() % 2 == 0) params.frequency_penalty = real(-2, 2);
    if (random() % 2 == 0) params.repetition_penalty = real(0.1, 3);
    if (random() % 2 == 0) params.allowed_tokens = some_ids(30);
    if (random() % 2 == 0) params.stop_tokens = some_ids(3);
    params.min_tokens = random() % 2 == 0 ? random() % 20 : 0;
    for (TokenId id = 0; id < static_cast<TokenId>(num_tokens); ++id)
      if (random() % 4 == 0) params.logit_bias.push_back({id, real(-100, 100)});
    if (!params.Prepare(num_tokens, some_ids(2)).ok()) continue;  // min_tokens leaves nothing

    std::vector<float> logits(num_tokens);
    for (float& logit : logits) logit = random() % 20 == 0 ? -kInfinity : real(-30, 30);
    const std::vector<TokenId> generated = some_ids(25);
    SamplerState state(params, num_tokens);
    for (const TokenId id : generated) state.Commit(id);
    const std::vector<float> adjusted = Adjusted(logits, params, state);
    const std::vector<double> expected = Reference(logits, params, generated);
    bool is_changed = false;
    for (uint32_t i = 0; i < num_tokens; ++i) {
      is_changed |= adjusted[i] != logits[i];
      if (std::isinf(expected[i])) {
        ASSERT_EQ(adjusted[i], expected[i]) << "seed " << seed << " token " << i;
        continue;
      }
      // Rounded to f32 (2^-24) after the bias, where it is below 130, and times at most 10 then;
      // and at the end, below 1,352 = 130 * 10 + 2 * 25 + 2.
      const double bound = std::ldexp(130.0 * 10 + 1352, -24);
      ASSERT_NEAR(adjusted[i], expected[i], bound) << "seed " << seed << " token " << i;
    }
    ASSERT_TRUE(!is_changed || NeedsAdjustment(params, state)) << "seed " << seed;
  }
}

TEST(LogitAdjustment, NeutralParamsNeedNoneAndCountNothing) {
  const SamplingParams neutral = Prepared({.repetition_penalty = 1.0f}, 10, {2});
  SamplerState state(neutral, 10);
  state.Commit(3);
  EXPECT_FALSE(state.counts_tokens());
  EXPECT_EQ(state.num_generated(), 1u);
  EXPECT_FALSE(NeedsAdjustment(neutral, state));
}

TEST(LogitAdjustment, PenaltiesTouchGeneratedTokensOnly) {
  const SamplingParams params =
      Prepared({.presence_penalty = 1, .frequency_penalty = 0.5f, .repetition_penalty = 2}, 5);
  SamplerState state(params, 5);
  EXPECT_FALSE(NeedsAdjustment(params, state));
  for (const TokenId id : {1, 1, 1, 4}) state.Commit(id);
  EXPECT_EQ(state.count(1), 3u);
  EXPECT_TRUE(std::ranges::equal(state.distinct(), std::vector<TokenId>{1, 4}));
  EXPECT_EQ(Adjusted({6, 6, 0, -6, -6}, params, state),
            (std::vector<float>{6, 6 / 2.0f - 1.5f - 1, 0, -6, -6 * 2.0f - 0.5f - 1}));
}

TEST(LogitAdjustment, EndTokensComeBackAfterMinTokens) {
  const SamplingParams params = Prepared({.min_tokens = 2, .stop_tokens = {1}}, 4, {3});
  SamplerState state(params, 4);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(Adjusted({0, 1, 2, 3}, params, state),
              (std::vector<float>{0, -kInfinity, 2, -kInfinity}));
    state.Commit(0);
  }
  EXPECT_FALSE(NeedsAdjustment(params, state));
}

// No bias or penalty lets a token back in, and finite stays finite at the ends of f32.
TEST(LogitAdjustment, NeverStaysNeverAndFiniteStaysFinite) {
  const SamplingParams params = Prepared({.presence_penalty = -2,
                                          .repetition_penalty = 1e-38f,
                                          .logit_bias = {{0, 100}, {1, 100}, {2, 100}, {3, -100}},
                                          .allowed_tokens = {0, 2, 3}},
                                         4);
  SamplerState state(params, 4);
  for (TokenId id = 0; id < 4; ++id) state.Commit(id);
  const std::vector<float> adjusted = Adjusted({-kInfinity, 5, kLargest, -kLargest}, params, state);
  EXPECT_EQ(adjusted[0], -kInfinity);
  EXPECT_EQ(adjusted[1], -kInfinity);
  EXPECT_EQ(adjusted[2], kLargest);
  EXPECT_TRUE(std::isfinite(adjusted[3]));
  const SamplingParams strong = Prepared({.repetition_penalty = 3e38f}, 2);
  SamplerState seen(strong, 2);
  seen.Commit(1);
  EXPECT_EQ(Adjusted({0, -5}, strong, seen)[1], -kLargest);
}

}  // namespace
}  // namespace quire
