// The engine with f32 activations against llama.cpp on small random models (tests/data/models, how
// they were made: goldens.json there) and on the tiny ones (tiny.json: a double reference).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/test_data.h"
#include "reference/engine_fixture.h"
#include "reference/golden_data.h"

namespace quire {
namespace {

Difference Measure(ModelRunner& engine, const GoldenLogits& want) {
  const size_t first = want.positions.front();
  std::vector<uint32_t> rows;
  for (const uint32_t position : want.positions)
    rows.push_back(position - static_cast<uint32_t>(first));
  const auto vocab_size = static_cast<size_t>(engine.model().shape().vocab_size);
  const std::vector<float> logits = ComputeLogits(engine, want.tokens, first);
  return Compare(PickRows<float>(logits, rows, vocab_size), want.logits);
}

TEST(RandomModels, MeetTheFloatBoundWithF32Kv) {
  for (const GoldenModel& golden : GoldenModels()) {
    const auto engine = LoadRunner(golden.path, ExactOptions());
    for (const GoldenLogits& want : golden.goldens) {
      const Difference difference = Measure(*engine, want);
      EXPECT_LE(difference.max_abs, want.max_abs_bound.value_or(golden.float_bound.max_abs))
          << want.label << ": " << difference;
      // At 2,048 positions the oracle's f32 rope angles cost more than the rest: README of rplus.
      if (!want.max_abs_bound) {
        EXPECT_LE(difference.rel_rms, golden.float_bound.rel_rms)
            << want.label << ": " << difference;
      }
    }
  }
}

// What rounding K and V to f16 cost the oracle, three times: where rounding errors fall is chance.
TEST(RandomModels, StayNearWithF16Kv) {
  for (const GoldenModel& golden : GoldenModels()) {
    EngineOptions options = ExactOptions();
    options.kv_codec = KvCodec::kF16;
    const auto engine = LoadRunner(golden.path, options);
    const Difference difference = Measure(*engine, golden.goldens.front());
    EXPECT_TRUE(difference.Within(3 * golden.f16_kv_cost.max_abs, 3 * golden.f16_kv_cost.rel_rms))
        << golden.name << ": " << difference;
    EXPECT_GT(difference.rel_rms, golden.float_bound.rel_rms)
        << golden.name << ": the codec seems not to be in use: " << difference;
  }
}

TEST(RandomModels, ContinueGreedilyAsTheOracle) {
  int num_prompts = 0;
  for (const GoldenModel& golden : GoldenModels())
    for (const GreedyGolden& want : golden.greedy) {
      const auto engine = LoadRunner(golden.path, ExactOptions());
      EXPECT_EQ(Greedy(*engine, want.prompt, want.answer.size()), want.answer)
          << golden.name << " after " << want.prompt.size() << " ids";
      ++num_prompts;
    }
  EXPECT_EQ(num_prompts, 2);
}

// Bound: f32 arithmetic gives an NMSE of 3e-14 to 4e-12 on these; the smallest fault 8e-8.
TEST(RandomModels, MeetTheTinyGoldens) {
  for (const TinyModel& tiny : TinyModels()) {
    const auto engine = LoadRunner(tiny.writer, ExactOptions());
    const std::vector<float> logits = ComputeLogits(*engine, tiny.tokens);
    const Difference difference =
        Compare(PickRows<float>(logits, tiny.positions, tiny.vocab_size), tiny.logits);
    EXPECT_LE(difference.nmse, 1e-10) << tiny.name << ": " << difference;
  }
}

// Given any of its parts.
TEST(RandomModels, AreTheSameWhenSplitOverFiles) {
  const TinyModel tiny = FindTinyModel("gemma3");
  const std::vector<float> want =
      ComputeLogits(*LoadRunner(tiny.writer, ExactOptions()), tiny.tokens);
  const TemporaryFolder folder;
  std::vector<std::string> paths;
  for (const GgufWriter& part : tiny.writer.Split(3)) {
    const Bytes bytes = part.File();
    paths.push_back(folder.path() + fmt::format("/m-{:05}-of-00003.gguf", paths.size() + 1));
    std::ofstream(paths.back(), std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
  for (const std::string& path : paths)
    EXPECT_EQ(ComputeLogits(*LoadRunner(path, ExactOptions()), tiny.tokens), want) << path;
}

// 146 keys, some of them 0 for "not set", biases, .scale factors; padding of no vocabulary.
TEST(RandomModels, KeysThatAreZeroMeanNotSet) {
  for (const char* name : {"llama", "qwen2", "qwen3"}) {
    const auto path = SharedData("models/random/" + std::string(name) + "-dense.gguf");
    if (!path) GTEST_SKIP() << "no shared data on this machine";
    const auto engine = LoadRunner(*path, ExactOptions());
    const std::vector<double> want = ToDouble(ReadFloatFile(*path + ".logits.f32"));
    const std::vector<TokenId> tokens = LcgTokens(12345, 100, 128);
    const Difference difference = Compare(ToDouble(ComputeLogits(*engine, tokens)), want);
    EXPECT_LT(difference.nmse, 1e-10) << name << ": " << difference;
  }
}

}  // namespace
}  // namespace quire
