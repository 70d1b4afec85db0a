#include "engine/logprobs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "engine/sampler.h"

namespace quire {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> RandomLogits(uint32_t seed, size_t num_tokens, int num_values) {
  std::mt19937 random(seed);
  std::vector<float> logits(num_tokens);
  for (float& logit : logits)
    logit = 12 * static_cast<float>(random() % num_values) / static_cast<float>(num_values) - 9;
  return logits;
}

std::vector<TokenId> SortedIds(const std::vector<float>& logits) {
  std::vector<TokenId> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::stable_sort(ids.begin(), ids.end(),
                   [&](TokenId a, TokenId b) { return logits[a] > logits[b]; });
  return ids;
}

// Few values: many ties, where the lower id comes first (MAT-18).
TEST(Logprobs, TheTopAreTheFirstOfASortByLogitAndId) {
  for (const uint32_t num_tokens : {1u, 2u, 19u, 20u, 21u, 1000u})
    for (const int num_values : {1, 3, 1000000})
      for (const uint32_t num_top : {0u, 1u, 2u, 20u}) {
        const std::vector<float> logits = RandomLogits(num_tokens, num_tokens, num_values);
        const std::vector<TokenId> sorted = SortedIds(logits);
        long double sum = 0;
        for (const float logit : logits) sum += std::exp(static_cast<long double>(logit));
        Logprobs logprobs;
        const auto sampled = static_cast<TokenId>(num_tokens / 2);
        FillLogprobs(logits, sorted[0], sampled, num_top, logprobs);
        // As in sampler_test.cc.
        const double bound = (2.0 + num_tokens + 4 * 64) * std::ldexp(1.0, -53);
        const auto expected = [&](TokenId id) {
          return static_cast<double>(logits[id] - std::log(sum));
        };
        EXPECT_NEAR(logprobs.sampled, expected(sampled), bound);
        ASSERT_EQ(logprobs.num_top, std::min(num_top, num_tokens));
        for (uint32_t i = 0; i < logprobs.num_top; ++i) {
          EXPECT_EQ(logprobs.top[i].id, sorted[i]) << num_tokens << " " << num_values << " " << i;
          EXPECT_NEAR(logprobs.top[i].logprob, expected(sorted[i]), bound);
        }
      }
}

TEST(Logprobs, ATokenThatCantBeHasMinusInfinity) {
  Logprobs logprobs;
  FillLogprobs(std::vector<float>{-kInfinity, 1, 1}, 1, 0, 3, logprobs);
  EXPECT_EQ(logprobs.sampled, -kInfinity);
  EXPECT_EQ(logprobs.top[2].id, 0);
  EXPECT_EQ(logprobs.top[2].logprob, -kInfinity);
  EXPECT_NEAR(logprobs.top[0].logprob, -std::log(2.0), 4e-16);  // 2 units in the last place of ln 2
}

// Whatever the request lays on the logits, what is told is the model's own.
TEST(Logprobs, AreThoseOfTheRawLogitsWhateverTheParams) {
  const std::vector<float> logits = RandomLogits(1, 50, 30);
  SamplingParams params{.temperature = 1.7f,
                        .presence_penalty = 2,
                        .repetition_penalty = 3,
                        .logit_bias = {{7, 100}},
                        .allowed_tokens = {7, 8, 9},
                        .top_logprobs = 20};
  ASSERT_TRUE(params.Prepare(50, {}).ok());
  SamplerState state(params, 50);
  state.Commit(8);
  Sampler sampler(50);
  const auto token = sampler.Sample(logits, params, state, 0);
  ASSERT_TRUE(token.ok());
  EXPECT_EQ(token->id, 7);
  Logprobs raw;
  FillLogprobs(logits, SortedIds(logits)[0], 7, 20, raw);
  EXPECT_EQ(token->logprobs.sampled, raw.sampled);
  ASSERT_EQ(token->logprobs.num_top, 20u);
  for (size_t i = 0; i < 20; ++i) {
    EXPECT_EQ(token->logprobs.top[i].id, raw.top[i].id);
    EXPECT_EQ(token->logprobs.top[i].logprob, raw.top[i].logprob);
  }
}

}  // namespace
}  // namespace quire
