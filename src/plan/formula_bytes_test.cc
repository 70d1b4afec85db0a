#include "plan/formula_bytes.h"

#include <gtest/gtest.h>

#include "base/test_data.h"
#include "codec/kv_format.h"
#include "plan/read_kv_model.h"
#include "plan/shape_text.h"

namespace quire {
namespace {

KvModel Config(const std::string& name) {
  const auto model = ReadKvModel(TestData("configs/" + name + ".json"));
  EXPECT_TRUE(model.ok()) << model.status().message();
  return model.ok() ? *model : KvModel();
}

KvModel Shape(std::string_view text) {
  const auto model = ReadShapeText(text);
  EXPECT_TRUE(model.ok()) << model.status().message();
  return model.ok() ? *model : KvModel();
}

constexpr uint64_t kGiB = uint64_t{1} << 30;

// 80 layers x 8 KV heads x (128 + 128) values x 2 bytes = 327,680 bytes a token, x 32,000.
TEST(FormulaBytes, Llama3Of70BWith32000Tokens) {
  const KvModel gqa = Config("llama-3-70b");
  EXPECT_EQ(FormulaBytes(gqa, 1, 16), 327'680u);
  EXPECT_EQ(FormulaBytes(gqa, 32'000, 16), 10'485'760'000u);
  EXPECT_EQ(FormulaBytes(gqa, 32'000, 8), 5'242'880'000u);
  // As multi-head attention: 64 heads instead of 8.
  const KvModel mha = Shape("layers=80,kv_heads=64,head_dim=128");
  EXPECT_EQ(FormulaBytes(mha, 32'000, 16), 83'886'080'000u);
  // Half of 640 GB is 320,000,000,000 bytes.
  EXPECT_EQ(320'000'000'000u / FormulaBytes(mha, 32'000, 16), 3u);
  EXPECT_EQ(320'000'000'000u / FormulaBytes(gqa, 32'000, 16), 30u);
  EXPECT_EQ(320'000'000'000u / FormulaBytes(gqa, 32'000, 8), 61u);
}

// 32 layers x 8 x 256 x 2 = 131,072 bytes a token, x 32,000.
TEST(FormulaBytes, Llama3Of8BWith32000Tokens) {
  EXPECT_EQ(FormulaBytes(Config("llama-3-8b"), 1, 16), 131'072u);
  EXPECT_EQ(FormulaBytes(Config("llama-3-8b"), 32'000, 16), 4'194'304'000u);
}

// Multi-head attention of width 8,192 = 64 heads of 128, 80 layers: 80 x 64 x 256 x 2 = 2.5 MiB.
TEST(FormulaBytes, MultiHeadAttentionOfThe70BSize) {
  const KvModel model = Shape("layers=80,kv_heads=64,head_dim=128");
  EXPECT_EQ(FormulaBytes(model, 1, 16), 2'621'440u);
  EXPECT_EQ(FormulaBytes(model, 4'096, 16), 10 * kGiB);
  EXPECT_EQ(32 * FormulaBytes(model, 4'096, 16), 320 * kGiB);
}

// 28 layers x 8 KV heads x (128 + 128) x 2. With hidden / heads = 1,024 / 16 = 64 it would be half.
TEST(FormulaBytes, Qwen3TakesTheHeadDimensionOfTheFile) {
  EXPECT_EQ(FormulaBytes(Config("qwen3-0.6b"), 1, 16), 114'688u);
}

// 61 layers x (512 + 64) x 2. As K and V of one head it would be 124,928, expanded to 128 heads
// 61 x 128 x (192 + 128) x 2 = 4,997,120.
TEST(FormulaBytes, DeepSeekV3CachesOneLatentAndOneKeyPart) {
  EXPECT_EQ(FormulaBytes(Config("deepseek-v3"), 1, 16), 70'272u);
  EXPECT_EQ(FormulaBytes(Config("kimi-k2"), 1, 16), 70'272u);
  EXPECT_EQ(FormulaBytes(Shape("layers=61,kv_lora_rank=512,rope_dim=64"), 1, 16), 70'272u);
}

// A layer has 16 KV heads x 256 values x 2 = 8,192 bytes a token. 10 full layers x 131,072 tokens =
// 10,737,418,240; 52 layers x 1,024 tokens = 436,207,616. All in full would be 62 GiB.
TEST(FormulaBytes, Gemma3Of27BWith131072Tokens) {
  const KvModel model = Config("gemma-3-27b");
  EXPECT_EQ(FormulaBytes(model, 131'072, 16), 11'173'625'856u);
  ASSERT_EQ(model.groups.size(), 2u);
  EXPECT_EQ(FormulaBytes(model.groups[0], 131'072, 16), 10'737'418'240u);
  EXPECT_EQ(FormulaBytes(model.groups[1], 131'072, 16), 436'207'616u);

  // In pages of 16 a full layer holds 8,192 of them, a layer with a window of 1,024 at most 65.
  const KvFormat& f16 = KvFormatOf(KvCodec::kF16);
  const uint64_t chunk = KvChunkBytes(f16, f16, 16, 128, 128);
  EXPECT_EQ(chunk * 16 * 10, 1'310'720u);  // bytes of a page of the full layers
  EXPECT_EQ(chunk * 16 * (10 * 8'192 + 52 * 65), 11'180'441'600u);
}

// 32 layers x 8 x 256 x 2 = 131,072 bytes a token; of 32,768 tokens the window holds 4,096. In
// pages of 16 these are 257.
TEST(FormulaBytes, Mistral7BHasAWindowInItsConfig) {
  const KvModel model = Config("mistral-7b-v0.1");
  EXPECT_EQ(FormulaBytes(model, 32'768, 16), 536'870'912u);
  const KvFormat& f16 = KvFormatOf(KvCodec::kF16);
  EXPECT_EQ(KvChunkBytes(f16, f16, 16, 128, 128) * 8 * 32 * 257, 538'968'064u);
  // Version 0.3 has none, nor has the GGUF file of 0.1 (gguf_model_test.cc).
  EXPECT_EQ(FormulaBytes(Config("mistral-7b-v0.3"), 32'768, 16), 4'294'967'296u);
}

TEST(FormulaBytes, AWindowHoldsNoMoreThanThereIs) {
  const KvModel model = Config("mistral-7b-v0.1");
  EXPECT_EQ(FormulaBytes(model, 4'095, 16), 4'095u * 131'072);
  EXPECT_EQ(FormulaBytes(model, 4'097, 16), 4'096u * 131'072);
  EXPECT_EQ(FormulaBytes(model, 0, 16), 0u);
}

TEST(FormulaBytes, TheLargestModelDoesNotOverflow) {
  const KvModel model = Shape("layers=1024,kv_heads=1,head_dim=65536,v_head_dim=65536");
  EXPECT_EQ(FormulaBytes(model, kMaxPlanContext, 32), uint64_t{131'072} * 4 << 40);
  EXPECT_EQ(FormulaBytes(model, uint64_t{1} << 62, 32), UINT64_MAX);
}

}  // namespace
}  // namespace quire
