// gemma-3-270m against a float64 pass over its exact weights: perplexity by goldens/greedy.json of
// the shared data, greedy answers by tests/reference. By hand only (tools/test_gemma.sh): the
// licence of the model does not let us ship it.
#include <gtest/gtest.h>

#include "base/test_data.h"
#include "golden/perplexity.h"
#include "reference/engine_fixture.h"
#include "reference/golden_data.h"
#include "reference/reference_forward.h"

namespace quire {
namespace {

constexpr auto kF32 = ActivationForm::kF32;
constexpr auto kInt8 = ActivationForm::kInt8;

// Where the best two logits are closer, rounded activations may take the other one.
constexpr double kLeastGap = 0.3;

class Gemma : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = CachedModel("gemma-3-270m-q4_k_m.gguf").value_or("");
    if (path_.empty()) GTEST_SKIP() << "no gemma-3-270m in the cache: see tools/test_gemma.sh";
    text_ = SharedData("text/wiki.test.raw").value_or("");
    if (text_.empty()) GTEST_SKIP() << "no shared data on this machine";
  }

  std::unique_ptr<ModelRunner> Load(ActivationForm activations) const {
    EngineOptions options = ExactOptions();
    options.activations = activations;
    options.kv_codec = KvCodec::kF16;
    options.num_threads = 0;
    return LoadRunner(path_, options);
  }

  // Bounds: f32 activations and f16 K and V 0.1 %; int8 activations 1 %.
  void ExpectPerplexity(ActivationForm activations, size_t context, size_t num_chunks,
                        double want) const {
    const auto engine = Load(activations);
    const auto tokenizer = Tokenizer::Create(engine->model().vocabulary());
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
    const double got = Perplexity(*engine, *tokenizer, text_, context, num_chunks);
    std::printf("perplexity %.4f, reference %.4f\n", got, want);
    EXPECT_NEAR(got, want, want * (activations == kF32 ? 0.001 : 0.01));
  }

  std::string path_, text_;
};

TEST_F(Gemma, PerplexityWithinTheWindow) { ExpectPerplexity(kF32, 512, 4, 15.2343); }
TEST_F(Gemma, PerplexityWithinTheWindowInt8) { ExpectPerplexity(kInt8, 512, 4, 15.2343); }
// With full attention in all layers it would be 305.
TEST_F(Gemma, PerplexityBeyondTheWindow) { ExpectPerplexity(kF32, 1024, 2, 12.0226); }
TEST_F(Gemma, PerplexityBeyondTheWindowInt8) { ExpectPerplexity(kInt8, 1024, 2, 12.0226); }

TEST_F(Gemma, TokenisesAsTheGolden) {
  const auto goldens = SharedData("goldens/greedy.json");
  ASSERT_TRUE(goldens.has_value());
  const std::vector<TokenId> want =
      ReadJsonFile(*goldens).at("perplexity").at("first_24_ids").at("gemma3-270m-q4_k_m");
  const auto engine = Load(kF32);
  const auto tokenizer = Tokenizer::Create(engine->model().vocabulary());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  const std::string start = ReadTestFile(text_).substr(0, 500);
  const auto ids = tokenizer->Encode(start, {.add_special = true, .parse_special = false});
  ASSERT_TRUE(ids.ok() && ids->size() > want.size());
  EXPECT_EQ(std::vector<TokenId>(ids->begin(), ids->begin() + static_cast<ptrdiff_t>(want.size())),
            want);
}

// Some minutes: the reference holds the weights as doubles (2.2 GB) and computes all anew for each
// id.
TEST_F(Gemma, AnswersAsTheReferenceUpToANarrowGap) {
  const auto reference = ReferenceModel::Load(path_);
  ASSERT_TRUE(reference.ok()) << reference.status().message();
  const auto exact = Load(kF32), rounded = Load(kInt8);
  const auto tokenizer = Tokenizer::Create(exact->model().vocabulary());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  size_t num_compared = 0;
  for (const char* prompt : {"Once upon a time", "The capital of France is", "1, 2, 3, 4,"}) {
    const auto ids = tokenizer->Encode(prompt, {.add_special = true, .parse_special = false});
    ASSERT_TRUE(ids.ok());
    const std::vector<TokenId> want = reference->Greedy(*ids, 16, kLeastGap);
    EXPECT_EQ(Greedy(*exact, *ids, want.size()), want) << prompt;
    EXPECT_EQ(Greedy(*rounded, *ids, want.size()), want) << prompt;
    num_compared += want.size();
  }
  std::printf("%zu ids compared\n", num_compared);
  EXPECT_GE(num_compared, 8u);
}

}  // namespace
}  // namespace quire
