// Apart from sampler_test.cc: this program counts operator new (base/allocation_count.h).
#include <gtest/gtest.h>

#include <vector>

#include "base/allocation_count.h"
#include "engine/sampler.h"

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

}  // namespace
}  // namespace quire
