// The step loop without its thread: what each step computes, in tests that no race decides.
#include "engine/step_loop.h"

#include <gtest/gtest.h>

#include "engine/test_loop.h"

namespace quire {
namespace {

// The random number of a token is that of its place in the sequence, prompt included.
TEST(StepLoop, TokensAreSampledAtTheirPosition) {
  Loop loop;
  Request request{.prompt = Tokens(20)};
  request.sampling.temperature = 1.5f;
  request.sampling.seed = 11;
  request.num_choices = 2;
  const auto answer = loop.Add(request, 12);
  while (loop.steps->has_work()) loop.steps->Step();

  auto plain =
      ModelRunner::Load(TestData("models/llama-gqa.gguf"), {.num_threads = 1, .page_size = 16}, {});
  ASSERT_TRUE(plain.ok());
  Sampler sampler(static_cast<uint32_t>((*plain)->model().shape().num_tokens));
  for (uint32_t choice = 0; choice < 2; ++choice) {
    Sequence sequence = (*plain)->NewSequence();
    auto logits = (*plain)->Compute(sequence, request.prompt);
    for (uint32_t i = 0; i < 12; ++i) {
      ASSERT_TRUE(logits.ok());
      const auto token = sampler.Sample(logits.value(), request.sampling, SamplerState(),
                                        /*position=*/20 + i, choice);
      ASSERT_EQ(answer->tokens(choice)[i], token->id) << "choice " << choice << ", token " << i;
      logits = (*plain)->Compute(sequence, {&token->id, 1});
    }
  }
}

// A sequence that computes a prompt already takes over the pages of one that has overtaken it.
TEST(StepLoop, ARunningPromptFollowsAnother) {
  Loop loop({.token_budget = 32});
  auto first = Tokens(400), second = Tokens(400);
  second[320] = (second[320] + 1) % 250;  // 20 pages in common
  const auto slow = loop.Add({.prompt = first, .priority = 1}, 1);
  for (int i = 0; i < 3; ++i) loop.steps->Step();
  const auto quick = loop.Add({.prompt = second, .priority = 0}, 1);
  loop.RunUntilEnd(*slow);
  loop.RunUntilEnd(*quick);
  EXPECT_EQ(loop.stats().computed_prompt_tokens, 320u + 80 + 80);
}

// PFX-19: the last token of a prompt that is cached whole is computed, and its page is not written:
// a mark in its slot stays.
TEST(StepLoop, ACachedPromptsLastTokenWritesNoSharedPage) {
  Loop loop;
  const auto prompt = Tokens(32);
  loop.RunUntilEnd(*loop.Add({.prompt = prompt}, 0));
  KvCache& cache = loop.runner->cache();
  const auto ns = cache.Namespace({.identity = loop.runner->identity()}).value();
  const PrefixMatch match = cache.Find(ns, prompt);
  ASSERT_EQ(match.length, 32u);
  auto* keys = reinterpret_cast<uint16_t*>(cache.tree().Use(match.node, OpenClass(0)).address());
  constexpr uint16_t kMark = 0x3C00;  // 1.0 in the first channel of the page's last token
  keys[15] = kMark;
  const auto answer = loop.Add({.prompt = prompt}, 1);
  loop.RunUntilEnd(*answer);
  EXPECT_EQ(answer->prompt().num_cached, 31u);
  EXPECT_EQ(keys[15], kMark);
}

// What is computed of a page that is not full is found again after a preemption.
TEST(StepLoop, APreemptedSequenceKeepsItsOpenPage) {
  Loop loop;
  const auto answer = loop.Add({.prompt = Tokens(40)}, 5);
  while (answer->tokens(0).empty()) loop.steps->Step();
  loop.steps->PreemptAll();
  loop.RunUntilEnd(*answer);
  EXPECT_EQ(answer->num_preemptions(), 1u);
  EXPECT_EQ(loop.stats().computed_prompt_tokens, 40u);
}

// SCH-12: who has been served less is next, though the others came first.
TEST(StepLoop, TenantsTakeTurnsByWhatTheyGot) {
  Loop loop({.max_seqs = 1});
  std::vector<std::shared_ptr<Answer>> many;
  for (uint32_t i = 0; i < 4; ++i)
    many.push_back(loop.Add({.prompt = Tokens(60, 10 + i), .tenant = "a"}, 10));
  const auto one = loop.Add({.prompt = Tokens(20, 99), .tenant = "b"}, 3);
  loop.RunUntilEnd(*one);
  EXPECT_TRUE(many[0]->ended(0));
  EXPECT_FALSE(many[1]->ended(0));
}

}  // namespace
}  // namespace quire
