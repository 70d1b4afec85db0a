#include "engine/model_runner.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/allocation_count.h"
#include "base/machine.h"
#include "base/test_data.h"
#include "engine/test_models.h"

namespace quire {
namespace {

std::unique_ptr<ModelRunner> LoadSmall(EngineOptions options = {}) {
  if (options.num_threads == 0) options.num_threads = 2;
  auto engine = ModelRunner::Load(TestData("models/llama-gqa.gguf"), options, {});
  EXPECT_TRUE(engine.ok()) << engine.status().message();
  return std::move(engine).value();
}

std::vector<TokenId> Tokens(size_t count) {
  std::vector<TokenId> tokens(count);
  for (size_t i = 0; i < count; ++i) tokens[i] = static_cast<TokenId>((i * 37 + 11) % 251);
  return tokens;
}

std::vector<float> Copy(std::span<const float> values) { return {values.begin(), values.end()}; }

TEST(ModelRunner, LogitsAreOfTheLastTokensAskedFor) {
  auto engine = LoadSmall();
  const auto tokens = Tokens(10);
  Sequence all = engine->NewSequence(), last = engine->NewSequence();
  const auto ten = Copy(engine->Compute(all, tokens, 10).value());
  const auto one = Copy(engine->Compute(last, tokens, 1).value());
  const auto vocab = static_cast<size_t>(engine->model().shape().vocab_size);
  ASSERT_EQ(ten.size(), 10 * vocab);
  ASSERT_EQ(one.size(), vocab);
  EXPECT_TRUE(std::equal(one.begin(), one.end(), ten.end() - static_cast<int64_t>(vocab)));
}

TEST(ModelRunner, ChunksAndNeighboursChangeNoBit) {
  auto whole = LoadSmall({.token_budget = 512});
  const auto a = Tokens(90), b = Tokens(40);
  Sequence whole_a = whole->NewSequence(), whole_b = whole->NewSequence();
  const auto logits_a = Copy(whole->Compute(whole_a, a, 90).value());
  const auto logits_b = Copy(whole->Compute(whole_b, b, 40).value());
  for (uint32_t token_budget : {1u, 7u, 64u}) {
    auto engine = LoadSmall({.token_budget = token_budget});
    Sequence one = engine->NewSequence(), two = engine->NewSequence();
    const SequenceInput inputs[] = {{&one, a, 90}, {&two, b, 40}};
    auto both = logits_a;
    both.insert(both.end(), logits_b.begin(), logits_b.end());
    EXPECT_EQ(Copy(engine->Compute(inputs).value()), both) << "chunks of " << token_budget;
  }
}

TEST(ModelRunner, ATruncatedSequenceGoesOnWithTheSameBits) {
  auto engine = LoadSmall();
  const auto tokens = Tokens(100);
  const std::span<const TokenId> all(tokens);
  Sequence fresh = engine->NewSequence(), edited = engine->NewSequence();
  const auto expected = Copy(engine->Compute(fresh, all).value());
  ASSERT_TRUE(engine->Compute(edited, all.first(90)).ok());
  const std::vector<TokenId> other = {1, 2, 3, 4};
  ASSERT_TRUE(engine->Compute(edited, other).ok());
  edited.Truncate(70);
  EXPECT_EQ(Copy(engine->Compute(edited, all.subspan(70)).value()), expected);
}

TEST(ModelRunner, TellsWhereItsBudgetComesFrom) {
  EXPECT_EQ(LoadSmall({.kv_memory_bytes = 16 << 20})->kv_budget_source(), "as given");
  const auto runner = LoadSmall();
  EXPECT_EQ(runner->kv_budget_source(), "default, from what is " + ReadFreeMemory().source);
  EXPECT_LE(runner->kv_budget_bytes(), ReadFreeMemory().bytes);
}

TEST(ModelRunner, FailedCallsLeaveTheSequenceAsItWas) {
  // Two pages of 16 tokens.
  EngineOptions options{.page_size = 16};
  {
    auto probe = LoadSmall(options);
    Sequence sequence = probe->NewSequence();
    ASSERT_TRUE(probe->Compute(sequence, Tokens(1)).ok());
    options.kv_memory_bytes = 2 * probe->kv_held_bytes();
  }
  auto engine = LoadSmall(options);
  Sequence sequence = engine->NewSequence();
  ASSERT_TRUE(engine->Compute(sequence, Tokens(20)).ok());
  const uint64_t held = engine->kv_held_bytes();

  EXPECT_EQ(engine->Compute(sequence, Tokens(20)).status().code(), StatusCode::kResourceExhausted);
  const std::vector<TokenId> outside = {3, 256};
  EXPECT_EQ(engine->Compute(sequence, outside).status().code(), StatusCode::kInvalidArgument);
  const std::vector<TokenId> negative = {-1};
  EXPECT_EQ(engine->Compute(sequence, negative).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(engine->Compute(sequence, std::span<const TokenId>()).status().code(),
            StatusCode::kInvalidArgument);
  const std::atomic<bool> cancelled = true;
  EXPECT_EQ(engine->Compute(sequence, Tokens(3), 1, &cancelled).status().code(),
            StatusCode::kCancelled);
  EXPECT_EQ(sequence.tokens().size(), 20u);
  EXPECT_EQ(engine->kv_held_bytes(), held);
}

TEST(ModelRunner, TheContextIsALimit) {
  auto engine = LoadSmall({.context_len = 8});
  Sequence sequence = engine->NewSequence();
  ASSERT_TRUE(engine->Compute(sequence, Tokens(8)).ok());
  const Status status = engine->Compute(sequence, Tokens(1)).status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("8"), std::string::npos);
}

TEST(ModelRunner, IdleKvMemoryIsNotCommitted) {
  auto engine = LoadSmall({.kv_memory_bytes = uint64_t{64} << 30});
  EXPECT_EQ(engine->kv_committed_bytes(), 0u);
  EXPECT_EQ(engine->kv_held_bytes(), 0u);
  {
    Sequence sequence = engine->NewSequence();
    ASSERT_TRUE(engine->Compute(sequence, Tokens(65)).ok());
    EXPECT_GT(engine->kv_held_bytes(), 0u);
    EXPECT_LE(engine->kv_committed_bytes(), uint64_t{4} << 20);
  }
  EXPECT_EQ(engine->kv_held_bytes(), 0u);
}

TEST(ModelRunner, DecodeAllocatesNothingAfterWarmUp) {
  auto engine = LoadSmall({.num_threads = 1, .page_size = 16});  // one thread: all is counted
  Sequence sequence = engine->NewSequence();
  ASSERT_TRUE(engine->Compute(sequence, Tokens(100)).ok());
  const TokenId token = 5;
  const uint64_t before = AllocationCount();
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(engine->Compute(sequence, {&token, 1}).ok());
  EXPECT_EQ(AllocationCount(), before);
}

// The NaN is in layer 1's feed forward, so that layer 2's K and V have it.
TEST(ModelRunner, NanInKOrVFailsTheCallAndNamesTheFirstLayer) {
  auto engine =
      ModelRunner::Load(ModelWithNan(TestData("models/llama-gqa.gguf"), "blk.1.ffn_down.weight", 0),
                        {.num_threads = 2}, {});
  ASSERT_TRUE(engine.ok()) << engine.status().message();
  Sequence sequence = (*engine)->NewSequence();
  const Status status = (*engine)->Compute(sequence, Tokens(5)).status();
  EXPECT_EQ(status.code(), StatusCode::kNonFinite);
  EXPECT_NE(status.message().find("layer 2"), std::string::npos) << status.message();
  EXPECT_TRUE(sequence.tokens().empty());
  EXPECT_EQ((*engine)->kv_held_bytes(), 0u);
}

TEST(ModelRunner, FreedPagesCanGoBackToTheSystem) {
  auto engine = LoadSmall({.context_len = 6000});
  Sequence sequence = engine->NewSequence();
  ASSERT_TRUE(engine->Compute(sequence, Tokens(6000)).ok());
  EXPECT_GT(engine->kv_committed_bytes(), 0u);
  sequence.Truncate(0);
  engine->ReleaseIdleMemory();
  EXPECT_EQ(engine->kv_committed_bytes(), 0u);
}

TEST(ModelRunner, OptionsOutOfRangeAreErrors) {
  const std::string path = TestData("models/llama-gqa.gguf");
  EXPECT_FALSE(ModelRunner::Load(path, {.num_threads = -1}, {}).ok());
  EXPECT_FALSE(ModelRunner::Load(path, {.page_size = 20}, {}).ok());
  EXPECT_FALSE(ModelRunner::Load(path, {.token_budget = 0}, {}).ok());
}

TEST(ModelRunner, RunnersShareALoadedModelAndNothingElse) {
  const auto tokens = Tokens(70);
  auto first = LoadSmall();
  auto second = ModelRunner::Create(first->shared_model(), {.num_threads = 1}).value();
  EXPECT_EQ(&first->model(), &second->model());
  Sequence one = first->NewSequence(), two = second->NewSequence();
  const auto want = Copy(first->Compute(one, tokens, 70).value());
  EXPECT_EQ(second->kv_held_bytes(), 0u);
  EXPECT_EQ(Copy(second->Compute(two, tokens, 70).value()), want);
  one = second->NewSequence();
  first.reset();  // the model stays
  EXPECT_EQ(Copy(second->Compute(one, tokens, 70).value()), want);
  EXPECT_EQ(ModelRunner::Create(second->shared_model(), {.token_budget = 0}).status().code(),
            StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace quire
