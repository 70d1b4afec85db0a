// The engine against llama.cpp on the models of models/rplus of the shared data (its README says
// how they were made), of every architecture that runs, as F32 and quantised.
#include <gtest/gtest.h>

#include <algorithm>

#include "reference/engine_fixture.h"
#include "reference/golden_data.h"

namespace quire {
namespace {

constexpr char kNoSharedData[] = "no shared data on this machine";

const char* const kF32Models[] = {"llama-gqa",    "llama-mha",  "llama-mqa", "llama-hd80",
                                  "llama-linear", "llama-yarn", "qwen2",     "qwen3",
                                  "gemma3",       "gemma3-p3"};
const char* const kQuantisedModels[] = {"q-llama-q4km", "q-llama-mix", "q-qwen2-q8", "q-qwen3-q40",
                                        "q-gemma3-iq4nl"};

std::string TestName(const ::testing::TestParamInfo<const char*>& model) {
  std::string name = model.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

Difference Measure(const GoldenModel& golden, ActivationForm activations, KvCodec kv_codec) {
  EngineOptions options = ExactOptions();
  options.activations = activations;
  options.kv_codec = kv_codec;
  const GoldenLogits& want = golden.goldens.front();
  const std::vector<float> logits = ComputeLogits(*LoadRunner(golden.path, options), want.tokens);
  return Compare(PickRows<float>(logits, want.positions, golden.vocab_size), want.logits);
}

class Rplus : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    golden_ = RplusModel(GetParam());
    if (!golden_) GTEST_SKIP() << kNoSharedData;
  }
  std::optional<GoldenModel> golden_;
};
class RplusQuantised : public Rplus {};

TEST_P(Rplus, MeetsTheFloatBoundWithF32Kv) {
  const Difference difference = Measure(*golden_, ActivationForm::kF32, KvCodec::kF32);
  EXPECT_TRUE(difference.Within(golden_->float_bound.max_abs, golden_->float_bound.rel_rms))
      << difference;
}

// What rounding K and V to f16 cost the oracle, three times: where rounding errors fall is chance.
TEST_P(Rplus, StaysNearWithF16Kv) {
  const Difference difference = Measure(*golden_, ActivationForm::kF32, KvCodec::kF16);
  EXPECT_TRUE(difference.Within(3 * golden_->f16_kv_cost.max_abs, 3 * golden_->f16_kv_cost.rel_rms))
      << difference;
}

// Twice what rounding to 8-bit blocks cost the oracle itself.
TEST_P(RplusQuantised, StaysNearWithInt8Activations) {
  ASSERT_TRUE(golden_->int8_bound.has_value());
  const Difference difference = Measure(*golden_, ActivationForm::kInt8, KvCodec::kF32);
  RecordProperty("rel_rms", std::to_string(difference.rel_rms));
  EXPECT_TRUE(difference.Within(golden_->int8_bound->max_abs, golden_->int8_bound->rel_rms))
      << difference;
  EXPECT_GT(difference.rel_rms, golden_->float_bound.rel_rms) << "nothing seems to be rounded";
}

INSTANTIATE_TEST_SUITE_P(F32, Rplus, ::testing::ValuesIn(kF32Models), TestName);
INSTANTIATE_TEST_SUITE_P(Quantised, Rplus, ::testing::ValuesIn(kQuantisedModels), TestName);
INSTANTIATE_TEST_SUITE_P(Quantised, RplusQuantised, ::testing::ValuesIn(kQuantisedModels),
                         TestName);

}  // namespace
}  // namespace quire
