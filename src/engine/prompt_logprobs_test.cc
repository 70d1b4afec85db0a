// Log-probabilities of prompts: the bits of plain computation, however the prompt is computed.
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/logprobs.h"
#include "engine/test_engine.h"
#include "engine/test_loop.h"

namespace quire {
namespace {

constexpr uint32_t kNumTop = 3;

struct Scores {
  std::vector<double> logprobs;
  std::vector<std::vector<std::pair<TokenId, double>>> top;
  bool operator==(const Scores&) const = default;

  void Add(const Logprobs& row) {
    logprobs.push_back(row.sampled);
    auto& entries = top.emplace_back();
    for (uint32_t k = 0; k < row.num_top; ++k)
      entries.emplace_back(row.top[k].id, row.top[k].logprob);
  }
};

// From the logits of all positions.
Scores ComputedScores(std::span<const TokenId> prompt, uint32_t num_top = kNumTop) {
  auto runner =
      ModelRunner::Load(TestData("models/llama-gqa.gguf"), {.num_threads = 1, .page_size = 16}, {});
  QUIRE_CHECK(runner.ok());
  const auto& shape = (*runner)->model().shape();
  const auto vocab_size = static_cast<size_t>(shape.vocab_size);
  Sequence sequence = (*runner)->NewSequence();
  const auto logits = (*runner)->Compute(sequence, prompt, static_cast<uint32_t>(prompt.size()));
  QUIRE_CHECK(logits.ok());
  Scores scores;
  for (size_t i = 1; i < prompt.size(); ++i) {
    const auto row = logits->subspan((i - 1) * vocab_size, static_cast<size_t>(shape.num_tokens));
    const auto best = static_cast<TokenId>(std::ranges::max_element(row) - row.begin());
    Logprobs logprobs;
    FillLogprobs(row, best, prompt[i], num_top, logprobs);
    scores.Add(logprobs);
  }
  return scores;
}

Scores ScoresOf(const Answer& answer) {
  Scores scores;
  for (uint32_t i = 1; i < answer.num_prompt_logprobs(); ++i) scores.Add(answer.prompt_logprob(i));
  return scores;
}

Request ScoringRequest(std::vector<TokenId> prompt, uint32_t max_tokens = 4) {
  Request request = GreedyRequest(std::move(prompt), max_tokens);
  request.prompt_logprobs = kNumTop;
  return request;
}

// PFX-12.
TEST(PromptLogprobs, AreThoseOfPlainComputationInAnyBatchAndAfterAHit) {
  EngineOptions options = SmallOptions();
  options.token_budget = 48;  // chunks
  auto engine = LoadSmall(options);
  const Scores expected = ComputedScores(Tokens(150));
  const Result plain = AnswerOf(*LoadSmall(), GreedyRequest(Tokens(150), 4));
  for (int round = 0; round < 2; ++round) {
    std::vector<std::shared_ptr<Answer>> scoring, others;
    engine->Ask([&](StepLoop&) {  // together: they share pages, and rows of a step
      for (uint32_t i = 0; i < 4; ++i) {
        others.push_back(Submit(*engine, GreedyRequest(Tokens(150), 4)));
        others.push_back(Submit(*engine, GreedyRequest(Tokens(40 + i, i), 9)));
        scoring.push_back(Submit(*engine, ScoringRequest(Tokens(150))));
      }
    });
    for (const auto& answer : scoring) {
      EXPECT_EQ(ResultOf(*answer), plain);
      EXPECT_EQ(ScoresOf(*answer), expected);
      EXPECT_EQ(answer->prompt().num_cached, 0u);
    }
  }
}

// API-20.
TEST(PromptLogprobs, AreThereWithoutAnyTokenToSample) {
  auto engine = LoadSmall();
  const auto answer = Submit(*engine, ScoringRequest(Tokens(50), 0));
  EXPECT_TRUE(ResultOf(*answer).ids.empty());
  EXPECT_EQ(answer->finish_reason(0), FinishReason::kMaxTokens);
  EXPECT_EQ(answer->num_prompt_logprobs(), 50u);
  EXPECT_EQ(ScoresOf(*answer), ComputedScores(Tokens(50)));
  EXPECT_EQ(answer->prompt().num_inserted, 48u);
  // What it computed is there for others.
  const auto next = Submit(*engine, GreedyRequest(Tokens(50), 1));
  ResultOf(*next);
  EXPECT_EQ(next->prompt().num_cached, 49u);
}

TEST(PromptLogprobs, AreTheSameForManyChoicesAndForOneToken) {
  auto engine = LoadSmall();
  Request request = ScoringRequest(Tokens(70));
  request.num_choices = 3;
  const auto answer = Submit(*engine, request);
  for (uint32_t choice = 0; choice < 3; ++choice)
    EXPECT_EQ(ResultOf(*answer, choice).ids.size(), 4u);
  EXPECT_EQ(ScoresOf(*answer), ComputedScores(Tokens(70)));

  const auto one = Submit(*engine, ScoringRequest(Tokens(1)));
  EXPECT_EQ(ResultOf(*one).ids.size(), 4u);
  EXPECT_EQ(one->num_prompt_logprobs(), 1u);
}

// Of a prompt that is preempted, what is known is kept: no row of logits is computed twice.
TEST(PromptLogprobs, SurviveAPreemptionAndAreNotComputedTwice) {
  Loop loop({.token_budget = 32});
  Request request{.prompt = Tokens(150), .prompt_logprobs = kNumTop};
  const auto answer = loop.Add(request, 2);
  for (int i = 0; i < 3; ++i) loop.steps->Step();
  EXPECT_EQ(answer->num_prompt_logprobs(), 97u);
  // Another request has the whole prompt in the cache by then: more than may be taken.
  loop.steps->PreemptAll();
  const auto other = loop.Add({.prompt = Tokens(150), .priority = -1}, 1);
  loop.RunUntilEnd(*other);
  EXPECT_FALSE(answer->ended(0));
  loop.RunUntilEnd(*answer);
  EXPECT_EQ(answer->num_preemptions(), 1u);
  EXPECT_EQ(ScoresOf(*answer), ComputedScores(Tokens(150)));
}

// Many scoring requests in a pool that holds few of them.
TEST(PromptLogprobs, AreTheSameInAFullPool) {
  auto engine = LoadWithPages(14);
  std::vector<std::shared_ptr<Answer>> answers;
  for (uint32_t i = 0; i < 6; ++i)
    answers.push_back(Submit(*engine, ScoringRequest(Tokens(60 + 9 * i, i), 50)));
  for (uint32_t i = 0; i < 6; ++i) {
    EXPECT_EQ(ResultOf(*answers[i]).ids.size(), 50u);
    EXPECT_EQ(ScoresOf(*answers[i]), ComputedScores(Tokens(60 + 9 * i, i))) << i;
  }
  EXPECT_GT(engine->stats().num_preemptions, 0u);
}

TEST(PromptLogprobs, TakeFewRowsOfLogitsInAStep) {
  EngineOptions options;
  options.prompt_logits_bytes = 0;  // one row
  Loop loop(options);
  const size_t row_bytes = static_cast<size_t>(loop.runner->model().shape().vocab_size) * 4;
  options.prompt_logits_bytes = 10 * row_bytes + 1;
  Loop ten(options);
  const auto slow = loop.Add({.prompt = Tokens(25), .prompt_logprobs = kNumTop}, 0);
  for (uint32_t i = 1; i <= 5; ++i) {
    loop.steps->Step();
    EXPECT_EQ(slow->num_prompt_computed(), i);
  }
  const auto first = ten.Add({.prompt = Tokens(25), .prompt_logprobs = kNumTop}, 0);
  const auto second = ten.Add({.prompt = Tokens(25, 2), .prompt_logprobs = kNumTop}, 0);
  uint32_t num_steps = 0;
  for (; ten.steps->has_work(); ++num_steps) ten.steps->Step();
  EXPECT_EQ(num_steps, 5u);  // 50 rows
  EXPECT_EQ(ScoresOf(*first), ComputedScores(Tokens(25)));
  EXPECT_EQ(ScoresOf(*second), ComputedScores(Tokens(25, 2)));
}

// PFX-12, with the reference's numbers.
TEST(PromptLogprobs, OfATrainedModelAreTheReferences) {
  const auto path = SharedData("models/stories260K/stories260K-f32.gguf");
  if (!path) GTEST_SKIP() << "no shared data on this machine";
  EngineOptions options = SmallOptions();
  options.activations = ActivationForm::kF32;
  options.kv_codec = KvCodec::kF32;
  const auto engine = Engine::Load(*path, options, {});
  ASSERT_TRUE(engine.ok()) << engine.status().message();
  const auto prompt = (*engine)->tokenizer().Encode("Once upon a time, there was a little girl",
                                                    {.add_special = true});
  ASSERT_TRUE(prompt.ok());
  const std::vector<double> expected = {-0.2437, -0.0175, -0.0121, -0.0007, -0.0317, -0.0684,
                                        -0.0160, -0.0008, -0.4940, -0.4459, -0.0049, -0.0007};
  ASSERT_EQ(prompt->size(), expected.size() + 1);
  for (int round = 0; round < 2; ++round) {
    const auto answer = Submit(**engine, ScoringRequest(*prompt, 0));
    EXPECT_TRUE(answer->WaitForAll().ok());
    const Scores scores = ScoresOf(*answer);
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(scores.logprobs[i], expected[i], 1e-4) << i;
  }
}

TEST(PromptLogprobs, MoreThanTwentyOfTheLikeliestAreRefused) {
  auto engine = LoadSmall();
  Request request = GreedyRequest(Tokens(5), 1);
  request.prompt_logprobs = 21;
  const Status status = engine->Submit(request).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("prompt_logprobs 21"), std::string::npos);
  request.prompt_logprobs = 20;
  const auto answer = Submit(*engine, request);
  ResultOf(*answer);
  EXPECT_EQ(ScoresOf(*answer), ComputedScores(Tokens(5), 20));
}

}  // namespace
}  // namespace quire
