// Apart from sampler_test.cc: this program counts operator new (base/allocation_count.h).
#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "base/allocation_count.h"
#include "engine/sampler.h"
#include "engine/stop_text.h"

namespace quire {
namespace {

TEST(SamplerAllocation, SamplingAllocatesNothing) {
  constexpr uint32_t kNumTokens = 20000;
  std::vector<float> varied(kNumTokens), flat(kNumTokens, 1.0f);
  for (uint32_t i = 0; i < kNumTokens; ++i) varied[i] = static_cast<float>(i * 7919 % 1000) / 50;
  Sampler sampler(kNumTokens);
  const uint64_t before = AllocationCount();
  for (const std::vector<float>* logits : {&varied, &flat})
    for (const SamplingParams& params :
         {SamplingParams{}, SamplingParams{.top_k = 0, .top_p = 1, .min_p = 0},
          SamplingParams{.top_k = 19000, .top_p = 0.99f, .top_logprobs = 20}})
      for (int position = 0; position < 3; ++position) {
        const bool ok = sampler.Sample(*logits, params, SamplerState(), position).ok();
        ASSERT_TRUE(ok);
      }
  EXPECT_EQ(AllocationCount(), before);
}

TEST(SamplerAllocation, WithAllThatARequestMayAskNothingIsAllocatedPerToken) {
  constexpr uint32_t kNumTokens = 20000;
  std::vector<float> logits(kNumTokens);
  for (uint32_t i = 0; i < kNumTokens; ++i) logits[i] = static_cast<float>(i * 7919 % 1000) / 50;
  SamplingParams params{.presence_penalty = 0.5f,
                        .frequency_penalty = 0.5f,
                        .repetition_penalty = 1.1f,
                        .min_tokens = 100,
                        .stop_tokens = {1, 2},
                        .stop_strings = {"stop", "top"},
                        .top_logprobs = 20};
  for (TokenId id = 0; id < 1000; ++id) params.logit_bias.push_back({id, 1});
  for (TokenId id = 0; id < 19000; ++id) params.allowed_tokens.push_back(id);
  ASSERT_TRUE(params.Prepare(kNumTokens, {}).ok());
  Sampler sampler(kNumTokens);
  SamplerState state(params, kNumTokens);
  StopText stop_text(params);
  const std::string_view piece = "a token's text: st";  // the stop string's start is held back
  for (int i = 0; i < 3; ++i) stop_text.Push(piece);
  const uint64_t before = AllocationCount();
  size_t num_shown = 0;
  for (uint64_t position = 0; position < 200; ++position) {
    const auto token = sampler.Sample(logits, params, state, position);
    ASSERT_TRUE(token.ok());
    state.Commit(token->id);
    num_shown += stop_text.Push(piece).size();
  }
  EXPECT_EQ(AllocationCount(), before);
  EXPECT_EQ(num_shown, 200 * piece.size());
}

}  // namespace
}  // namespace quire
