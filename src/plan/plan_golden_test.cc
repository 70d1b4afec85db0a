// Published numbers, with their arithmetic. 16 bits and no scales unless said; published figures
// mix GB (powers of 1000) and GiB (of 1024): here is bytes.
#include <gtest/gtest.h>

#include "plan/formula_bytes.h"
#include "plan/plan.h"
#include "plan/test_models.h"

namespace quire {
namespace {

Plan PlanOf(KvModel model, uint32_t context, std::string_view codec = "f16",
            uint32_t page_size = 64) {
  PlanRequest request{.model = std::move(model), .context_len = context};
  request.kv.page_size = page_size;
  EXPECT_TRUE(ParseKvChoice(codec, &request.kv).ok());
  request.memory.total_bytes = 640'000'000'000;
  request.memory.cache_share = 0.5;
  auto plan = MakePlan(std::move(request));
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  return std::move(plan).value();
}

// 80 layers x 8 KV heads x (128 + 128) x 2 B = 327,680 B a token; x 32,000. 32,000 tokens are 500
// whole pages of 64, so pages add nothing.
TEST(PlanGolden, Llama70BOf32000Tokens) {
  const Plan gqa = PlanOf(Llama70B(), 32'000);
  EXPECT_EQ(gqa.token_bytes, 327'680u);
  EXPECT_EQ(gqa.formula_bytes, 10'485'760'000u);
  EXPECT_EQ(gqa.conversation.counted_bytes, 10'485'760'000u);
  // 8 bits a value: half of it.
  EXPECT_EQ(FormulaBytes(Llama70B(), 32'000, 8), 5'242'880'000u);
  EXPECT_EQ(PlanOf(Llama70B(), 32'000, "fp8_e4m3:noscale").conversation.counted_bytes,
            5'242'880'000u);
  // 64 KV heads in place of 8: 8 times.
  const Plan mha = PlanOf(Llama70BAsMha(), 32'000);
  EXPECT_EQ(mha.formula_bytes, 83'886'080'000u);
  EXPECT_EQ(mha.conversation.counted_bytes, 83'886'080'000u);
}

// 320 GB for the cache: 320e9 / 83,886,080,000 = 3.8; / 10,485,760,000 = 30.5; / 5,242,880,000 =
// 61.04.
TEST(PlanGolden, Conversations32000TokensOn640GB) {
  EXPECT_EQ(PlanOf(Llama70BAsMha(), 32'000).users_in_budget, 3u);
  EXPECT_EQ(PlanOf(Llama70B(), 32'000).users_in_budget, 30u);
  EXPECT_EQ(PlanOf(Llama70B(), 32'000, "fp8_e4m3:noscale").users_in_budget, 61u);
  // With scales. int8: a chunk of 64 tokens has 2 x (64 x 128 codes + 64 x 2 of scales) = 16,640 B;
  // x 640 chunks x 500 pages = 5,324,800,000 B: 60.1.
  const Plan int8 = PlanOf(Llama70B(), 32'000, "int8");
  EXPECT_EQ(int8.conversation.counted_bytes, 5'324'800'000u);
  EXPECT_EQ(int8.users_in_budget, 60u);
  // tile8: 2 x 8,192 codes + 128 x 4 for K + 64 x 4 for V = 17,152 B; x 640 x 500 sealed pages, and
  // the open page that the last token fills, 20,971,520 B: 5,509,611,520 B: 58.1.
  const Plan tile8 = PlanOf(Llama70B(), 32'000, "tile8");
  EXPECT_EQ(tile8.conversation.counted_bytes, 5'509'611'520u);
  EXPECT_EQ(tile8.users_in_budget, 58u);
}

// 32 x 8 x 256 x 2 = 131,072 B a token; x 32,000.
TEST(PlanGolden, Llama8B) {
  const Plan plan = PlanOf(Llama8B(), 32'000);
  EXPECT_EQ(plan.token_bytes, 131'072u);
  EXPECT_EQ(plan.formula_bytes, 4'194'304'000u);
  EXPECT_EQ(plan.conversation.counted_bytes, 4'194'304'000u);
}

// 2 x 80 layers x 8,192 x 2 B = 2,621,440 B (2.5 MiB) a token; x 4,096 = 10 GiB; x 32 = 320 GiB.
TEST(PlanGolden, A70BModelOfMultiHeadAttention) {
  Plan plan = PlanOf(Llama70BAsMha(), 4096);
  EXPECT_EQ(plan.token_bytes, 2'621'440u);
  EXPECT_EQ(plan.conversation.counted_bytes, uint64_t{10} << 30);
  EXPECT_EQ(BytesFor(plan.shape, 32, 4096, 0), uint64_t{320} << 30);
}

// 28 layers x 8 KV heads x (128 + 128) x 2 B; head_dim is 128, not 1,024 / 16 heads = 64.
TEST(PlanGolden, Qwen3Of600M) {
  EXPECT_EQ(PlanOf(TestModel(28, 16, 8, 128, 40'960), 4096).token_bytes, 114'688u);
}

// 61 x (512 + 64) x 2 B = 70,272 B a token. PLN-01; traps: counted as K and V 124,928 (the latent
// twice), expanded 4,997,120.
TEST(PlanGolden, DeepSeekV3) {
  const Plan plan = PlanOf(DeepSeekV3(), 4096);
  EXPECT_EQ(plan.token_bytes, 70'272u);
  EXPECT_EQ(plan.conversation.counted_bytes, 70'272u * 4096);
}

// PLN-02. 10 full layers: 10 x 16 x 256 x 2 = 81,920 B a token x 131,072 = 10,737,418,240 B; 52 of
// a window: 425,984 B a token x 1,024 = 436,207,616 B. In pages of 16 a window layer holds 65 pages
// (its window begins within a page), 443,023,360 B.
TEST(PlanGolden, Gemma27BOf131072Tokens) {
  const Plan plan = PlanOf(Gemma27B(), 131'072, "f16", 16);
  EXPECT_EQ(plan.formula_bytes, 11'173'625'856u);
  EXPECT_EQ(BytesText(plan.formula_bytes), "10.41 GiB");
  EXPECT_EQ(plan.conversation.counted_bytes, 11'180'441'600u);
  EXPECT_EQ(plan.conversation.groups[0].pages.open, 8192u);
  EXPECT_EQ(plan.conversation.groups[1].pages.open, 65u);
}

// 131,072 B a token x 4,096 = 536,870,912 B; in pages of 16 257 x 2,097,152 B. Without the window,
// which its GGUF does not tell: x 32,768 = 4,294,967,296 B.
TEST(PlanGolden, Mistral7BOf32768Tokens) {
  const Plan plan = PlanOf(Mistral7B(), 32'768, "f16", 16);
  EXPECT_EQ(plan.formula_bytes, 536'870'912u);
  EXPECT_EQ(plan.conversation.counted_bytes, 538'968'064u);
  KvModel without = Mistral7B();
  without.groups.front().window = 0;
  EXPECT_EQ(PlanOf(without, 32'768, "f16", 16).formula_bytes, 4'294'967'296u);
}

}  // namespace
}  // namespace quire
