// The double reference against other programs' answers, before it judges the engine.
#include "reference/reference_forward.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/test_data.h"
#include "reference/golden_data.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

std::vector<double> Logits(const GgufWriter& writer, std::span<const TokenId> tokens) {
  const TemporaryFile file(writer);
  const auto model = ReferenceModel::Load(file.path());
  if (!model.ok()) {
    ADD_FAILURE() << model.status().message();
    return {};
  }
  return model->Logits(tokens);
}

TEST(Reference, MeetsTheGoldensOfEveryDenseLlama) {
  const std::vector<GoldenModel> models = GoldenModels();
  ASSERT_EQ(models.size(), 6u);
  for (const GoldenModel& golden : models) {
    const auto model = ReferenceModel::Load(golden.path);
    ASSERT_TRUE(model.ok()) << golden.name << ": " << model.status().message();
    for (const GoldenLogits& want : golden.goldens) {
      if (want.max_abs_bound) continue;  // the long one: its own test below
      const std::vector<double> logits = model->Logits(want.tokens);
      const Difference difference =
          Compare(PickRows<double>(logits, want.positions, golden.vocab_size), want.logits);
      EXPECT_TRUE(difference.Within(golden.double_bound.max_abs, golden.double_bound.rel_rms))
          << want.label << ": " << difference;
    }
  }
}

TEST(Reference, MeetsTheTinyGoldens) {
  for (const TinyModel& tiny : TinyModels()) {
    const TemporaryFile file(tiny.writer);
    const auto model = ReferenceModel::Load(file.path());
    ASSERT_TRUE(model.ok()) << tiny.name << ": " << model.status().message();
    const Difference difference = Compare(
        PickRows<double>(model->Logits(tiny.tokens), tiny.positions, tiny.vocab_size), tiny.logits);
    // The golden is a double reference too, printed with 7 digits: its rounding is all there is.
    EXPECT_LT(difference.rel_rms, 5e-7) << tiny.name << ": " << difference;
  }
}

// Biases, .scale factors and 146 keys, some of them 0.
TEST(Reference, MeetsTheRandomModels) {
  for (const char* name : {"llama", "qwen2", "qwen3"}) {
    const auto path = SharedData("models/random/" + std::string(name) + "-dense.gguf");
    if (!path) GTEST_SKIP() << "no shared data on this machine";
    const auto model = ReferenceModel::Load(*path);
    ASSERT_TRUE(model.ok()) << model.status().message();
    const std::vector<double> want = ToDouble(ReadFloatFile(*path + ".logits.f32"));
    const Difference difference = Compare(model->Logits(LcgTokens(12345, 100, 128)), want);
    EXPECT_LT(difference.nmse, 1e-10) << name << ": " << difference;
  }
}

// The architectures beside llama, and quantised files.
class ReferenceOf : public ::testing::TestWithParam<const char*> {};

TEST_P(ReferenceOf, MeetsTheGoldens) {
  const auto golden = RplusModel(GetParam());
  if (!golden) GTEST_SKIP() << "no shared data on this machine";
  const auto model = ReferenceModel::Load(golden->path);
  ASSERT_TRUE(model.ok()) << model.status().message();
  const GoldenLogits& want = golden->goldens.front();
  const Difference difference =
      Compare(PickRows<double>(model->Logits(want.tokens), want.positions, golden->vocab_size),
              want.logits);
  EXPECT_TRUE(difference.Within(golden->double_bound.max_abs, golden->double_bound.rel_rms))
      << difference;
}

INSTANTIATE_TEST_SUITE_P(Rplus, ReferenceOf,
                         ::testing::Values("qwen2", "qwen3", "gemma3", "gemma3-p3", "q-llama-q4km",
                                           "q-llama-mix", "q-qwen2-q8", "q-qwen3-q40",
                                           "q-gemma3-iq4nl"),
                         [](const auto& model) {
                           std::string name = model.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// Positions near 2,048. The oracle's f32 rope angles drift there: its own distance from a double
// pass is 1.51e-4, of 2e-4 that the bound allows.
TEST(ReferenceSlow, MeetsTheLongGolden) {
  for (const GoldenModel& golden : GoldenModels())
    for (const GoldenLogits& want : golden.goldens) {
      if (!want.max_abs_bound) continue;
      const auto model = ReferenceModel::Load(golden.path);
      ASSERT_TRUE(model.ok()) << model.status().message();
      const size_t first = want.positions.front();
      ASSERT_EQ(want.positions.size(), want.tokens.size() - first);
      const Difference difference = Compare(model->Logits(want.tokens, first), want.logits);
      EXPECT_LE(difference.max_abs, golden.double_bound.max_abs)
          << want.label << ": " << difference;
    }
}

TEST(Reference, ReadsFusedQkvAsItsThreeParts) {
  TinyModel tiny = FindTinyModel("llama-bias-linear-tied");
  for (int layer = 0; layer < 2; ++layer) FuseQkv(tiny.writer, layer);
  EXPECT_EQ(Logits(tiny.writer, tiny.tokens), Logits(FindTinyModel(tiny.name).writer, tiny.tokens));
}

// With L layers and a window of W, position p sees the tokens from p - L (W - 1) on.
TEST(Reference, WindowHidesEarlierTokensAndNoOthers) {
  constexpr uint32_t kWindow = 8, kLayers = 2, kPosition = 40;
  TinyModel tiny = FindTinyModel("llama");
  tiny.writer.Set("llama.attention.sliding_window", kWindow);
  const auto last_row = [&](uint32_t changed) {
    std::vector<TokenId> tokens(tiny.tokens.begin(), tiny.tokens.begin() + kPosition + 1);
    tokens[changed] ^= 1;
    const std::vector<double> logits = Logits(tiny.writer, tokens);
    return std::vector<double>(logits.end() - static_cast<ptrdiff_t>(tiny.vocab_size),
                               logits.end());
  };
  constexpr uint32_t kFirstSeen = kPosition - kLayers * (kWindow - 1);
  EXPECT_EQ(last_row(kFirstSeen - 1), last_row(0));
  EXPECT_NE(last_row(kFirstSeen), last_row(0));
}

TEST(Reference, RefusesWhatItDoesNotKnow) {
  const TemporaryFile file(
      FindTinyModel("llama").writer.SetString("general.architecture", "mamba"));
  const auto model = ReferenceModel::Load(file.path());
  ASSERT_FALSE(model.ok());
  EXPECT_THAT(model.status().message(), HasSubstr("mamba"));
}

}  // namespace
}  // namespace quire
