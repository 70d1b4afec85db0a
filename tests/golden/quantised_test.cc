// Quantised weights against the double reference on exactly those weights.
#include <gtest/gtest.h>

#include "base/test_data.h"
#include "reference/engine_fixture.h"
#include "reference/golden_data.h"
#include "reference/reference_forward.h"

namespace quire {
namespace {

// An f32 engine: the bound of goldens.json.
constexpr Bound kFloatBound = {.max_abs = 5e-4, .rel_rms = 5e-5};

// 8-bit activations, by measurement of another program: rounding them moves llama.cpp's logits of
// a random llama of Q4_K and Q6_K by 0.34 at most and by a relative RMS of 0.033; twice that is
// allowed, as the README of these models says. (A block of 32 normal values has its greatest near
// 2.1 RMS, so a code's rounding is 2.1 / 127 / sqrt(12) = 0.5 % of the RMS; 28 products in a row
// give sqrt(28) 0.5 % = 2.5 % if each passes on as much as it gets.)
constexpr Bound kInt8Bound = {.max_abs = 0.69, .rel_rms = 0.067};

class Quantised : public ::testing::TestWithParam<const char*> {
 protected:
  std::string path() const {
    return TestData("models/llama-gqa." + std::string(GetParam()) + ".gguf");
  }
  std::vector<TokenId> tokens() const { return LcgTokens(20261130, 160, 256); }
  bool takes_int8() const { return GetParam()[0] == 'Q'; }

  std::vector<double> Reference() const {
    const auto model = ReferenceModel::Load(path());
    EXPECT_TRUE(model.ok()) << model.status().message();
    return model->Logits(tokens());
  }
  std::vector<double> ModelRunner(ActivationForm activations) const {
    EngineOptions options = ExactOptions();
    options.activations = activations;
    return ToDouble(ComputeLogits(*LoadRunner(path(), options), tokens()));
  }
};

TEST_P(Quantised, MeetTheFloatBoundWithF32Activations) {
  const Difference difference = Compare(ModelRunner(ActivationForm::kF32), Reference());
  EXPECT_TRUE(difference.Within(kFloatBound.max_abs, kFloatBound.rel_rms)) << difference;
}

TEST_P(Quantised, StayNearWithInt8Activations) {
  const Difference difference = Compare(ModelRunner(ActivationForm::kInt8), Reference());
  RecordProperty("rel_rms", std::to_string(difference.rel_rms));
  if (takes_int8()) {
    EXPECT_TRUE(difference.Within(kInt8Bound.max_abs, kInt8Bound.rel_rms)) << difference;
    EXPECT_GT(difference.rel_rms, kFloatBound.rel_rms) << "nothing seems to be rounded";
  } else {  // F16 and BF16 matrices read f32 activations in either form
    EXPECT_TRUE(difference.Within(kFloatBound.max_abs, kFloatBound.rel_rms)) << difference;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, Quantised, ::testing::Values("F16", "BF16", "Q8_0", "Q4_0", "Q4_1"),
                         [](const auto& type) { return std::string(type.param); });

// A trained model with outliers, against double arithmetic on the same weights.
TEST(QuantisedSlow, SmolLm2MeetsTheReference) {
  const auto path = CachedModel("SmolLM2-135M-Instruct.Q4_1.gguf");
  if (!path) GTEST_SKIP() << "no SmolLM2 in the cache: tools/fetch_model.sh fetches it";
  const std::vector<TokenId> tokens = {3717, 446, 6356, 389, 9226, 352, 446, 3717};
  const auto model = ReferenceModel::Load(*path);
  ASSERT_TRUE(model.ok()) << model.status().message();
  const std::vector<double> want = model->Logits(tokens);
  const auto engine = LoadRunner(*path, ExactOptions());
  const Difference difference = Compare(ToDouble(ComputeLogits(*engine, tokens)), want);
  // 30 layers in place of 4.
  EXPECT_LE(difference.rel_rms, kFloatBound.rel_rms) << difference;
}

}  // namespace
}  // namespace quire
