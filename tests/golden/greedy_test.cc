// Greedy answers of trained models against goldens/greedy.json of the shared data: a float64 pass
// over the exact weights, and llama.cpp 3f545be, which agrees with it on the F32 models.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/test_data.h"
#include "engine/generation.h"
#include "reference/engine_fixture.h"
#include "reference/golden_data.h"
#include "reference/reference_forward.h"

namespace quire {
namespace {

using Json = nlohmann::json;

constexpr char kNoSharedData[] = "no shared data on this machine";
constexpr char kNoSmolLm2[] = "no SmolLM2 in the cache: tools/fetch_model.sh fetches it";
constexpr char kSmolLm2[] = "SmolLM2-135M-Instruct.Q4_1";

// Where the best two logits are closer than this, a model with rounded activations or K and V may
// take the other one: llama.cpp leaves SmolLM2's reference at gaps of 0.22 and 0.14.
constexpr double kLeastGap = 0.3;

std::optional<std::string> Model(const std::string& name) {
  if (name == kSmolLm2) return CachedModel(name + ".gguf");
  return SharedData("models/" + name.substr(0, name.rfind('-')) + "/" + name + ".gguf");
}

Json Prompts(const std::string& model) {
  const auto path = SharedData("goldens/greedy.json");
  if (!path) return nullptr;
  const Json root = ReadJsonFile(*path);
  for (const Json& entry : root.at("greedy").at("models"))
    if (entry.at("model") == model) return entry.at("prompts");
  return nullptr;
}

EngineOptions QuantisedOptions(ActivationForm activations) {
  EngineOptions options = ExactOptions();
  options.activations = activations;
  options.kv_codec = KvCodec::kF16;
  return options;
}

// How many ids must be equal: up to the first narrow gap.
size_t NumComparable(const std::vector<double>& gaps) {
  const auto narrow =
      std::find_if(gaps.begin(), gaps.end(), [](double gap) { return gap < kLeastGap; });
  return static_cast<size_t>(narrow - gaps.begin());
}

void ExpectSameStart(const std::vector<TokenId>& got, const std::vector<TokenId>& want,
                     size_t count, const std::string& what) {
  ASSERT_GE(got.size(), count);
  EXPECT_TRUE(std::equal(want.begin(), want.begin() + static_cast<ptrdiff_t>(count), got.begin()))
      << what << ": got " << ::testing::PrintToString(got) << ", the first " << count << " of "
      << ::testing::PrintToString(want) << " were wanted";
}

class GreedyF32 : public ::testing::TestWithParam<const char*> {};

// Every id, with prompt and answer also as text.
TEST_P(GreedyF32, AnswersExactlyAsTheReference) {
  const Json prompts = Prompts(GetParam());
  if (prompts.is_null()) GTEST_SKIP() << kNoSharedData;
  const auto engine = LoadEngine(*Model(GetParam()), ExactOptions());
  const Tokenizer& tokenizer = engine->tokenizer();
  for (const Json& prompt : prompts) {
    const std::string text = prompt.at("prompt");
    const auto ids = tokenizer.Encode(text, {.add_special = true, .parse_special = true});
    ASSERT_TRUE(ids.ok()) << ids.status().message();
    EXPECT_EQ(*ids, prompt.at("prompt_ids").get<std::vector<TokenId>>()) << text;

    std::string streamed;
    const auto answer = Generate(
        *engine, *ids, {.sampling = {.temperature = 0, .ignore_eos = true}, .max_tokens = 32},
        [&](std::string_view piece) { streamed += piece; });
    ASSERT_TRUE(answer.ok()) << answer.status().message();
    EXPECT_EQ(answer->ids, prompt.at("reference").at("ids").get<std::vector<TokenId>>()) << text;
    EXPECT_EQ(answer->text, prompt.at("reference").at("text").get<std::string>()) << text;
    EXPECT_EQ(streamed, answer->text) << text;
  }
}

INSTANTIATE_TEST_SUITE_P(Trained, GreedyF32,
                         ::testing::Values("stories260K-f32", "TinyStories-656K-f32"),
                         [](const auto& model) {
                           return std::string(model.param).substr(0, 4) == "Tiny" ? "TinyStories"
                                                                                  : "Stories260K";
                         });

struct QuantisedRun {
  const char* model;
  ActivationForm activations;
};
std::string RunName(const ::testing::TestParamInfo<QuantisedRun>& run) {
  std::string name = run.param.model;
  std::erase_if(name, [](char c) { return c == '-' || c == '.'; });
  return name + (run.param.activations == ActivationForm::kF32 ? "F32" : "Int8");
}

class GreedyQuantised : public ::testing::TestWithParam<QuantisedRun> {};

// The file has no goldens of these; the double reference makes them here.
TEST_P(GreedyQuantised, AnswersAsTheReferenceUpToANarrowGap) {
  const std::string name = GetParam().model;
  const Json prompts = Prompts(name.substr(0, name.rfind('-')) + "-f32");  // the same tokenizer
  if (prompts.is_null()) GTEST_SKIP() << kNoSharedData;
  const std::string path = *Model(name);
  const auto reference = ReferenceModel::Load(path);
  ASSERT_TRUE(reference.ok()) << reference.status().message();
  const auto engine = LoadRunner(path, QuantisedOptions(GetParam().activations));
  for (const Json& prompt : prompts) {
    const std::vector<TokenId> ids = prompt.at("prompt_ids");
    const std::vector<TokenId> want = reference->Greedy(ids, 32, kLeastGap);
    ExpectSameStart(Greedy(*engine, ids, want.size()), want, want.size(), prompt.at("prompt"));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Trained, GreedyQuantised,
    ::testing::Values(QuantisedRun{"TinyStories-656K-Q8_0", ActivationForm::kF32},
                      QuantisedRun{"TinyStories-656K-Q8_0", ActivationForm::kInt8},
                      QuantisedRun{"TinyStories-656K-Q4_0", ActivationForm::kF32},
                      QuantisedRun{"TinyStories-656K-Q4_0", ActivationForm::kInt8},
                      QuantisedRun{"stories260K-Q4_K_M", ActivationForm::kF32},
                      QuantisedRun{"stories260K-Q4_K_M", ActivationForm::kInt8}),
    RunName);

class GreedySlow : public ::testing::TestWithParam<QuantisedRun> {};

TEST_P(GreedySlow, SmolLm2AnswersAsTheReferenceUpToANarrowGap) {
  const auto path = Model(kSmolLm2);
  if (!path) GTEST_SKIP() << kNoSmolLm2;
  const Json prompts = Prompts(kSmolLm2);
  if (prompts.is_null()) GTEST_SKIP() << kNoSharedData;
  const auto engine = LoadRunner(*path, QuantisedOptions(GetParam().activations));
  const auto tokenizer = Tokenizer::Create(engine->model().vocabulary());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  for (const Json& prompt : prompts) {
    const std::string text = prompt.at("prompt");
    const std::vector<TokenId> ids = prompt.at("prompt_ids");
    const auto encoded = tokenizer->Encode(text, {.add_special = true, .parse_special = true});
    ASSERT_TRUE(encoded.ok()) << encoded.status().message();
    EXPECT_EQ(*encoded, ids) << text;
    const size_t count = NumComparable(prompt.at("reference").at("gap"));
    ExpectSameStart(Greedy(*engine, ids, count), prompt.at("reference").at("ids"), count, text);
  }
}

INSTANTIATE_TEST_SUITE_P(Trained, GreedySlow,
                         ::testing::Values(QuantisedRun{kSmolLm2, ActivationForm::kF32},
                                           QuantisedRun{kSmolLm2, ActivationForm::kInt8}),
                         RunName);

}  // namespace
}  // namespace quire
