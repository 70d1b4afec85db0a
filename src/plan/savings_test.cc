#include "plan/savings.h"

#include <gtest/gtest.h>

#include <string>

#include "plan/test_models.h"

namespace quire {
namespace {

KvChoice Choice(std::string_view name) {
  KvChoice choice;
  EXPECT_TRUE(ParseKvChoice(name, &choice).ok());
  return choice;
}

TEST(Savings, KindsOfAttention) {
  EXPECT_EQ(AttentionKind(Llama70B()), "GQA");
  EXPECT_EQ(AttentionKind(Llama70BAsMha()), "MHA");
  EXPECT_EQ(AttentionKind(TestModel(32, 71, 1, 64, 2048)), "MQA");
  EXPECT_EQ(AttentionKind(DeepSeekV3()), "MLA");
}

TEST(Savings, EachStepIsLessThanTheOneBefore) {
  const auto steps = SavingSteps(Gemma27B(), Choice("k=int8,v=int4"), 131'072);
  ASSERT_EQ(steps.size(), 4u);
  // 62 layers x 32 heads x 256 x 2 B x 131,072: PLN-02's trap is half of it, 62 GiB.
  EXPECT_EQ(steps[0].bytes, uint64_t{62} * 32 * 256 * 2 * 131'072);
  EXPECT_EQ(steps[1].name, "GQA: 16 of 32 heads");
  EXPECT_EQ(steps[1].bytes, uint64_t{62} << 30);
  EXPECT_EQ(steps[2].name, "windows");
  EXPECT_EQ(steps[2].bytes, 11'173'625'856u);
  EXPECT_EQ(steps[3].bytes, 11'173'625'856u * 3 / 8);  // 8 and 4 bits in place of 16 and 16
}

TEST(Savings, AModelWithoutSavingsHasOneStep) {
  EXPECT_EQ(SavingSteps(Llama70BAsMha(), Choice("f16"), 100).size(), 1u);
}

TEST(Savings, WithoutQueryHeadsThereIsNoNaiveFormula) {
  KvModel model = DeepSeekV3();
  model.num_q_heads = model.q_head_dim = model.v_head_dim = 0;
  const auto steps = SavingSteps(model, Choice("f16"), 1);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].bytes, 70'272u);
}

TEST(Savings, ALatentIsComparedWithItsHeads) {
  const auto steps = SavingSteps(DeepSeekV3(), Choice("int8"), 1);
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[0].bytes, 4'997'120u);  // 61 x 128 x (192 + 128) x 2
  EXPECT_EQ(steps[1].bytes, 70'272u);
  EXPECT_EQ(steps[2].bytes, 61u * (512 + 64 * 2));  // the shared key part stays in 16 bits
}

// A model of 131,072 tokens whose requests use 4,096: 32 times as many in pages.
TEST(Savings, PagesAgainstBuffersOfTheWholeContext) {
  const KvShape shape = ShapeOf(Llama8B(), Choice("f16")).value();
  const PagingGain gain = GainOfPages(shape, uint64_t{160} << 30, 131'072, 4096);
  EXPECT_EQ(gain.reserved_bytes, uint64_t{16} << 30);
  EXPECT_EQ(gain.contiguous_users, 10u);
  EXPECT_EQ(gain.paged_bytes, uint64_t{512} << 20);
  EXPECT_EQ(gain.paged_users, 320u);
  // A buffer has room for all tokens in window layers too.
  const KvShape windowed = ShapeOf(Mistral7B(), Choice("f16")).value();
  EXPECT_EQ(GainOfPages(windowed, 1, 32'768, 4096).reserved_bytes, 4'294'967'296u);
}

}  // namespace
}  // namespace quire
