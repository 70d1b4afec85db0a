#include "server/live_call.h"

#include <gtest/gtest.h>

#include "server/api/answer_test_support.h"

namespace quire {
namespace {

// A call as far as a summary looks at it.
LiveCall CallOfShop() {
  return {"req-1",
          ApiForm::kCompletions,
          "/v1/completions",
          {.key_name = "ada", .tenant = "shop"},
          TenantSlot(),
          HttpReply(nullptr),
          nullptr};
}

TEST(CallSummary, HasAWordForEachWayThatAChoiceCanEnd) {
  GenerationCall asks = CallOf(ApiForm::kCompletions, /*stream=*/false);
  asks.num_choices = 5;
  Asked asked(std::move(asks));
  for (uint32_t choice = 0; choice < 4; ++choice) asked.Push(0, choice, 403);
  asked.Push(0, 1, 407);
  Answer& answer = *asked.answers[0];
  answer.Finish(0, FinishReason::kEndOfAnswer, OkStatus());
  answer.Finish(1, FinishReason::kMaxTokens, OkStatus());
  answer.Finish(2, FinishReason::kError, Status(StatusCode::kNonFinite, "NaN"));
  answer.Finish(3, FinishReason::kCancelled, OkStatus());
  LiveCall call = CallOfShop();
  call.writer = std::move(asked.writer);
  const CallSummary summary = Summarise(call, 200, "");
  EXPECT_EQ(summary.finish_reasons,
            (std::vector<std::string>{"stop", "length", "error", "abort", "abort"}));
  EXPECT_EQ(summary.tenant, "shop");
  EXPECT_EQ(summary.prompt_tokens, 3u);
  EXPECT_EQ(summary.generated_tokens, 5u);
  EXPECT_EQ(summary.longest_answer, 2u);
  EXPECT_EQ(summary.token_gaps_s.size(), 1u);
  EXPECT_GE(summary.decode_seconds, 0);
  EXPECT_GE(summary.first_token_seconds, 0);
  EXPECT_STREQ(summary.phase, "decode");
}

TEST(CallSummary, OfACallThatTheEngineNeverHadHasNoNumbers) {
  const CallSummary summary = Summarise(CallOfShop(), 400, "invalid_value");
  EXPECT_EQ(summary.num_prompts, 0u);
  EXPECT_EQ(summary.error_code, "invalid_value");
  EXPECT_STREQ(summary.phase, "queued");
}

}  // namespace
}  // namespace quire
