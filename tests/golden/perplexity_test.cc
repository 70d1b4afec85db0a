// Perplexity of trained models against goldens/greedy.json of the shared data: a float64 pass over
// the exact weights. How it is counted stands there, and in Perplexity below.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "base/test_data.h"
#include "reference/engine_fixture.h"
#include "reference/golden_data.h"
#include "text/tokenizer.h"

namespace quire {
namespace {

constexpr char kSmolLm2[] = "SmolLM2-135M-Instruct.Q4_1";
constexpr char kWiki[] = "wiki.test.raw";
constexpr char kStories[] = "tinystories_sample_ascii.txt";

struct Run {
  const char* model;
  const char* text;
  size_t context;
  size_t num_chunks;
  double want;
  ActivationForm activations;
  KvCodec kv_codec;
  double bound;  // relative
};
void PrintTo(const Run& run, std::ostream* out) { *out << run.model << " " << run.text; }

// F32 models as they are: 0.1 %. With K and V in f16 (0.011 % on SmolLM2) and f32 activations the
// same bound holds, with int8 activations 1 %.
constexpr double kExact = 0.001, kInt8 = 0.01;
constexpr auto kF32 = ActivationForm::kF32;

const Run kFast[] = {
    {"stories260K-f32", kWiki, 512, 4, 101.3605, kF32, KvCodec::kF32, kExact},
    {"stories260K-f32", kStories, 256, 7, 3.8867, kF32, KvCodec::kF32, kExact},
    {"TinyStories-656K-f32", kStories, 128, 6, 24.6521, kF32, KvCodec::kF32, kExact},
    {"TinyStories-656K-Q8_0", kStories, 128, 6, 24.6151, kF32, KvCodec::kF16, kExact},
    {"TinyStories-656K-Q8_0", kStories, 128, 6, 24.6151, ActivationForm::kInt8, KvCodec::kF16,
     kInt8},
    {"TinyStories-656K-Q4_0", kStories, 128, 6, 26.9896, kF32, KvCodec::kF16, kExact},
    {"TinyStories-656K-Q4_0", kStories, 128, 6, 26.9896, ActivationForm::kInt8, KvCodec::kF16,
     kInt8},
};
const Run kSlow[] = {
    {kSmolLm2, kWiki, 512, 4, 22.7437, kF32, KvCodec::kF16, kExact},
    {kSmolLm2, kWiki, 512, 4, 22.7437, ActivationForm::kInt8, KvCodec::kF16, kInt8},
};

std::string ReadText(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// -log of the probability that the row gives `token`.
double NegativeLogLikelihood(std::span<const float> row, TokenId token) {
  double top = -INFINITY, sum = 0;
  for (const float logit : row) top = std::max(top, double{logit});
  for (const float logit : row) sum += std::exp(logit - top);
  return std::log(sum) + top - row[static_cast<size_t>(token)];
}

// The text in chunks of `context` ids, BOS in place of each first one if the model adds BOS; the
// second half of a chunk is scored, but for its first id.
double Perplexity(Engine& engine, const Tokenizer& tokenizer, const std::vector<TokenId>& ids,
                  size_t context, size_t num_chunks) {
  const auto vocab_size = static_cast<size_t>(engine.model().shape().vocab_size);
  const size_t half = context / 2;
  double sum = 0;
  for (size_t chunk = 0; chunk < num_chunks; ++chunk) {
    const auto begin = ids.begin() + static_cast<ptrdiff_t>(chunk * context);
    std::vector<TokenId> tokens(begin, begin + static_cast<ptrdiff_t>(context));
    if (tokenizer.adds_bos()) tokens[0] = tokenizer.bos().value();
    const std::vector<float> logits = ComputeLogits(engine, tokens, half);
    for (size_t i = half; i + 1 < context; ++i)
      sum += NegativeLogLikelihood(std::span(logits).subspan((i - half) * vocab_size, vocab_size),
                                   tokens[i + 1]);
  }
  return std::exp(sum / static_cast<double>(num_chunks * (context - half - 1)));
}

void ExpectPerplexity(const Run& run) {
  const auto text = SharedData(std::string("text/") + run.text);
  if (!text) GTEST_SKIP() << "no shared data on this machine";
  const std::string name = run.model;
  const auto path =
      name == kSmolLm2
          ? CachedModel(name + ".gguf")
          : SharedData("models/" + name.substr(0, name.rfind('-')) + "/" + name + ".gguf");
  if (!path) GTEST_SKIP() << "no SmolLM2 in the cache: tools/fetch_model.sh fetches it";

  EngineOptions options = ExactOptions();
  options.activations = run.activations;
  options.kv_codec = run.kv_codec;
  options.num_threads = name == kSmolLm2 ? 0 : 1;
  const auto engine = LoadEngine(*path, options);
  const auto tokenizer = Tokenizer::Create(engine->model().vocabulary());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  const auto ids =
      tokenizer->Encode(ReadText(*text), {.add_special = true, .parse_special = false});
  ASSERT_TRUE(ids.ok()) << ids.status().message();
  ASSERT_GE(ids->size(), run.context * run.num_chunks);

  const double got = Perplexity(*engine, *tokenizer, *ids, run.context, run.num_chunks);
  ::testing::Test::RecordProperty("perplexity", std::to_string(got));
  EXPECT_NEAR(got, run.want, run.want * run.bound);
}

class PerplexityOf : public ::testing::TestWithParam<Run> {};
class PerplexitySlow : public ::testing::TestWithParam<Run> {};
TEST_P(PerplexityOf, IsTheReferences) { ExpectPerplexity(GetParam()); }
TEST_P(PerplexitySlow, IsTheReferences) { ExpectPerplexity(GetParam()); }

std::string RunName(const ::testing::TestParamInfo<Run>& run) {
  std::string name = std::string(run.param.model) + run.param.text[0] +
                     (run.param.activations == kF32 ? "F32" : "Int8");
  std::erase_if(name, [](char c) { return c == '-' || c == '.'; });
  return name;
}
INSTANTIATE_TEST_SUITE_P(Trained, PerplexityOf, ::testing::ValuesIn(kFast), RunName);
INSTANTIATE_TEST_SUITE_P(Trained, PerplexitySlow, ::testing::ValuesIn(kSlow), RunName);

}  // namespace
}  // namespace quire
