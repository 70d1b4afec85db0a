#include "engine/sampling_params.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace quire {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr uint32_t kNumTokens = 100;

std::string Refusal(SamplingParams params, std::vector<TokenId> ends = {2}) {
  const Status status = params.Prepare(kNumTokens, ends);
  EXPECT_TRUE(status.ok() || status.code() == StatusCode::kInvalidArgument);
  return status.message();
}

TEST(SamplingParams, PenaltiesOutsideTheirRangesAreNamed) {
  for (const float good : {-2.0f, -0.5f, 0.0f, 2.0f}) {
    EXPECT_EQ(Refusal({.presence_penalty = good}), "");
    EXPECT_EQ(Refusal({.frequency_penalty = good}), "");
  }
  for (const float bad : {-2.1f, 2.1f, kNan, kInfinity, -kInfinity}) {
    EXPECT_NE(Refusal({.presence_penalty = bad}), "");
    EXPECT_NE(Refusal({.frequency_penalty = bad}), "");
  }
  EXPECT_EQ(Refusal({.presence_penalty = kNan}), "presence_penalty nan: need -2 to 2");
  for (const float good : {1e-38f, 0.5f, 1.0f, 3e38f})
    EXPECT_EQ(Refusal({.repetition_penalty = good}), "");
  for (const float bad : {0.0f, -1.0f, kNan, kInfinity})
    EXPECT_NE(Refusal({.repetition_penalty = bad}), "");
  EXPECT_EQ(Refusal({.repetition_penalty = 0}),
            "repetition_penalty 0: need a finite number above 0");
}

TEST(SamplingParams, IdsOutsideTheVocabularyAreNamed) {
  for (const TokenId bad : {-1, 100, 2147483647, -2147483647 - 1}) {
    const std::string tail =
        ": token id " + std::to_string(bad) + " is outside the vocabulary: 0 to 99";
    EXPECT_EQ(Refusal({.stop_tokens = {3, bad}}), "stop_tokens" + tail);
    EXPECT_EQ(Refusal({.allowed_tokens = {bad, 3}}), "allowed_tokens" + tail);
    EXPECT_EQ(Refusal({.logit_bias = {{bad, 1}}}), "logit_bias" + tail);
  }
  EXPECT_EQ(Refusal({.logit_bias = {{99, 1}}, .allowed_tokens = {0, 99}, .stop_tokens = {0, 99}}),
            "");
}

TEST(SamplingParams, ABiasIsARangeAndAnIdOnce) {
  EXPECT_EQ(Refusal({.logit_bias = {{5, 100}, {6, -100}}}), "");
  for (const float bad : {100.1f, -101.0f, kNan, kInfinity})
    EXPECT_NE(Refusal({.logit_bias = {{5, bad}}}), "");
  EXPECT_EQ(Refusal({.logit_bias = {{5, 101}}}), "logit_bias of token 5: 101: need -100 to 100");
  EXPECT_EQ(Refusal({.logit_bias = {{5, 1}, {6, 1}, {5, 2}}}),
            "logit_bias names token 5 twice: give it once");
  SamplingParams many;
  for (TokenId id = 0; id < 1025; ++id) many.logit_bias.push_back({id, 0});
  EXPECT_EQ(many.Prepare(5000, {}).message(), "logit_bias of 1025 tokens: need at most 1024");
  many.logit_bias.pop_back();
  EXPECT_TRUE(many.Prepare(5000, {}).ok());
}

TEST(SamplingParams, ListsOfTokensAreBounded) {
  SamplingParams many{.stop_tokens = std::vector<TokenId>(1025, 1)};
  EXPECT_EQ(many.Prepare(5000, {}).message(), "stop_tokens has 1025 ids: need at most 1024");
  many.stop_tokens.pop_back();
  EXPECT_TRUE(many.Prepare(5000, {}).ok());
  many.allowed_tokens.assign(5001, 1);
  EXPECT_EQ(many.Prepare(5000, {}).message(), "allowed_tokens has 5001 ids, the vocabulary 5000");
}

TEST(SamplingParams, StopStringsAreBounded) {
  EXPECT_EQ(Refusal({.stop_strings = std::vector<std::string>(16, std::string(256, 'x'))}), "");
  EXPECT_EQ(Refusal({.stop_strings = std::vector<std::string>(17, "x")}),
            "17 stop strings: need at most 16");
  EXPECT_EQ(Refusal({.stop_strings = {"x", ""}}), "stop string 1 has 0 bytes: need 1 to 256");
  EXPECT_EQ(Refusal({.stop_strings = {std::string(257, 'x')}}),
            "stop string 0 has 257 bytes: need 1 to 256");
  EXPECT_EQ(Refusal({.stop_strings = {"ab\xC3"}}), "stop string 0 is not UTF-8 from byte 2 on");
}

TEST(SamplingParams, TopLogprobsAreBounded) {
  EXPECT_EQ(Refusal({.top_logprobs = 0}), "");
  EXPECT_EQ(Refusal({.top_logprobs = 20}), "");
  EXPECT_EQ(Refusal({.top_logprobs = 21}), "top_logprobs 21: need 0 to 20");
  EXPECT_EQ(Refusal({.top_logprobs = -1}), "top_logprobs -1: need 0 to 20");
}

TEST(SamplingParams, EndTokensAreTheModelsAndTheRequests) {
  SamplingParams params{.stop_tokens = {9, 3, 9}};
  ASSERT_TRUE(params.Prepare(kNumTokens, std::vector<TokenId>{2, 5}).ok());
  EXPECT_EQ(params.end_tokens, (std::vector<TokenId>{2, 3, 5, 9}));
  params.ignore_eos = true;
  ASSERT_TRUE(params.Prepare(kNumTokens, std::vector<TokenId>{2, 5}).ok());
  EXPECT_EQ(params.end_tokens, (std::vector<TokenId>{3, 9}));
  EXPECT_TRUE(params.EndsAnswer(9));
  EXPECT_FALSE(params.EndsAnswer(2));
}

TEST(SamplingParams, MinTokensThatLeaveNothingToChooseAreRefused) {
  EXPECT_EQ(Refusal({.allowed_tokens = {2, 7}, .min_tokens = 4, .stop_tokens = {7}}),
            "min_tokens 4: each of the 2 allowed tokens ends the answer: allow another one, or "
            "lower min_tokens to 0");
  EXPECT_EQ(Refusal({.allowed_tokens = {2, 7}, .min_tokens = 0, .stop_tokens = {7}}), "");
  EXPECT_EQ(Refusal({.allowed_tokens = {2, 7, 8}, .min_tokens = 4, .stop_tokens = {7}}), "");
  EXPECT_EQ(
      Refusal({.allowed_tokens = {2, 7}, .min_tokens = 4, .ignore_eos = true, .stop_tokens = {7}}),
      "");
  SamplingParams all{.min_tokens = 1};
  for (TokenId id = 0; id < static_cast<TokenId>(kNumTokens); ++id) all.stop_tokens.push_back(id);
  EXPECT_EQ(Refusal(all), "min_tokens 1: every token ends the answer: none can come before");
}

}  // namespace
}  // namespace quire
