// The engine's first promise: the logits of a position depend on the model, the activation form,
// the KV codec, the page size and the tokens before it, and on nothing else. Every way to the same
// position must give the same bits: chunks, calls, threads, instruction sets, neighbours in a
// batch, a sequence that was cut back.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>

#include "base/test_data.h"
#include "reference/engine_fixture.h"
#include "reference/golden_data.h"

namespace quire {
namespace {

// [position][vocab_size]
using Logits = std::vector<float>;

// What the bits may depend on besides the model and the tokens.
struct Form {
  ActivationForm activations;
  KvCodec kv_codec;
  uint32_t page_size = 64;
};
constexpr Form kForms[] = {{ActivationForm::kF32, KvCodec::kF32},
                           {ActivationForm::kF32, KvCodec::kF16},
                           {ActivationForm::kInt8, KvCodec::kF32},
                           {ActivationForm::kInt8, KvCodec::kF16}};
constexpr Form kSmallPages = {ActivationForm::kInt8, KvCodec::kF16, 16};

// One model, its tokens, and the logits that every other way must give again.
class Purity {
 public:
  Purity(std::string path, Form form, std::vector<TokenId> tokens)
      : path_(std::move(path)), tokens_(std::move(tokens)), base_(ExactOptions()) {
    base_.activations = form.activations;
    base_.kv_codec = form.kv_codec;
    base_.page_size = form.page_size;
    const auto engine = Load({});
    vocab_size_ = static_cast<size_t>(engine->model().shape().vocab_size);
    want_ = ComputeLogits(*engine, tokens_);
    what_ = path_.substr(path_.rfind('/') + 1) +
            (form.activations == ActivationForm::kF32 ? ", f32" : ", int8") + " activations, " +
            std::string(KvCodecName(form.kv_codec)) + " KV, pages of " +
            std::to_string(form.page_size);
  }

  using Change = std::function<void(EngineOptions&)>;

  std::unique_ptr<ModelRunner> Load(const Change& change) const {
    EngineOptions options = base_;
    if (change) change(options);
    return LoadRunner(path_, options);
  }

  // An engine with other options, fed with `step` tokens a call (0: all).
  void ExpectSame(const std::string& way, const Change& change, size_t step = 0,
                  size_t count = SIZE_MAX) const {
    const auto tokens = std::span(tokens_).first(std::min(count, tokens_.size()));
    ExpectSameBits(way, ComputeLogits(*Load(change), tokens, 0, step), 0);
  }

  // The logits `got` of positions from `first` on.
  void ExpectSameBits(const std::string& way, std::span<const float> got, size_t first) const {
    ASSERT_EQ(got.size() % vocab_size_, 0u);
    ASSERT_LE(first * vocab_size_ + got.size(), want_.size());
    for (size_t i = 0; i < got.size(); ++i) {
      const float want = want_[first * vocab_size_ + i];
      if (std::bit_cast<uint32_t>(got[i]) == std::bit_cast<uint32_t>(want)) continue;
      ADD_FAILURE() << what_ << ", " << way << ": position " << first + i / vocab_size_
                    << ", token " << i % vocab_size_ << ": " << got[i] << " in place of " << want
                    << " (first of those that differ)";
      return;
    }
  }

  std::span<const TokenId> tokens() const { return tokens_; }
  size_t vocab_size() const { return vocab_size_; }
  const std::string& what() const { return what_; }

 private:
  std::string path_;
  std::vector<TokenId> tokens_;
  EngineOptions base_;
  size_t vocab_size_ = 0;
  Logits want_;
  std::string what_;
};

Purity::Change Threads(int num_threads) {
  return [=](EngineOptions& options) { options.num_threads = num_threads; };
}
Purity::Change Chunks(uint32_t token_budget) {
  return [=](EngineOptions& options) { options.token_budget = token_budget; };
}
Purity::Change Instructions(InstructionSet set) {
  return [=](EngineOptions& options) { options.instruction_set = set; };
}

// All ways of one sequence alone. `portable_count`: how many tokens the slow portable kernels get.
void ExpectPure(const Purity& purity, size_t portable_count = SIZE_MAX) {
  for (const uint32_t token_budget : {1u, 7u, 64u})
    purity.ExpectSame("chunks of " + std::to_string(token_budget), Chunks(token_budget));
  purity.ExpectSame("token by token", {}, 1);
  purity.ExpectSame("calls of 33 tokens", Chunks(32), 33);
  for (const int num_threads : {2, 3}) {
    const std::string threads = std::to_string(num_threads) + " threads";
    purity.ExpectSame(threads, Threads(num_threads));
    // A barrier costs much where there are fewer cores than threads: just past the first page.
    purity.ExpectSame(threads + ", token by token", Threads(num_threads), 1, 70);
  }
  for (const InstructionSet set : AvailableInstructionSets()) {
    const size_t count = set == InstructionSet::kPortable ? portable_count : SIZE_MAX;
    const std::string name(InstructionSetName(set));
    purity.ExpectSame(name, Instructions(set), 0, count);
    purity.ExpectSame(name + ", token by token", Instructions(set), 1, count);
  }
  purity.ExpectSame(
      "all at once",
      [](EngineOptions& options) {
        options.num_threads = 3;
        options.token_budget = 13;
      },
      29);
}

std::vector<TokenId> Tokens(size_t count, uint32_t vocab_size) {
  return LcgTokens(20261130, count, vocab_size);
}

TEST(Purity, EveryWayToAPositionGivesTheSameBits) {
  for (const char* name : {"llama-gqa.gguf", "llama-gqa.F16.gguf", "llama-gqa.BF16.gguf",
                           "llama-gqa.Q8_0.gguf", "llama-gqa.Q4_0.gguf", "llama-gqa.Q4_1.gguf"})
    for (const Form& form : kForms)
      ExpectPure(Purity(TestData("models/" + std::string(name)), form, Tokens(150, 256)));
}

TEST(Purity, HoldsWithSmallPages) {
  ExpectPure(Purity(TestData("models/llama-gqa.Q4_1.gguf"), kSmallPages, Tokens(150, 256)));
}

// Head counts and head lengths that fill no vector evenly.
TEST(Purity, HoldsForEveryShapeOfHeads) {
  for (const char* name : {"llama-mha", "llama-mqa", "llama-hd80", "llama-linear", "llama-yarn"})
    for (const Form& form : {kForms[0], kForms[1]})
      ExpectPure(Purity(TestData("models/" + std::string(name) + ".gguf"), form, Tokens(100, 131)));
}

// The architectures beside llama: head norms, sandwich norms, biases, a window of 8 that ends
// inside a page, two ropes.
TEST(Purity, HoldsForEveryArchitecture) {
  for (const char* name : {"qwen2", "qwen3", "gemma3"}) {
    const TemporaryFile file(FindTinyModel(name).writer);
    for (const Form& form : {kForms[0], kForms[3], kSmallPages})
      ExpectPure(Purity(file.path(), form, Tokens(90, 128)), /*portable_count=*/70);
  }
}

// The same with quantised weights, whose products read rounded activations.
class PurityOf : public ::testing::TestWithParam<const char*> {};

TEST_P(PurityOf, QuantisedArchitectures) {
  const auto path = SharedData("models/rplus/" + std::string(GetParam()) + ".gguf");
  if (!path) GTEST_SKIP() << "no shared data on this machine";
  ExpectPure(Purity(*path, kForms[3], Tokens(90, 256)), /*portable_count=*/70);
}

INSTANTIATE_TEST_SUITE_P(Rplus, PurityOf,
                         ::testing::Values("q-qwen2-q8", "q-qwen3-q40", "q-gemma3-iq4nl"),
                         [](const auto& model) {
                           std::string name = model.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// The forward pass does what lies between stages in one way when a step has few rows, in another
// when it has many; 400 rows of 64 are many.
TEST(Purity, StepsOfFewAndOfManyRowsGiveTheSameBits) {
  for (const char* name : {"llama", "qwen2", "qwen3", "gemma3"}) {
    TinyModel tiny = FindTinyModel(name);
    tiny.writer.Set<uint32_t>(tiny.architecture + ".context_length", 512);
    const TemporaryFile file(tiny.writer);
    for (const Form& form : {kForms[0], kForms[3]}) {
      const Purity purity(file.path(), form, Tokens(400, 128));
      purity.ExpectSame("chunks of 100", Chunks(100));
      purity.ExpectSame("2 threads", Threads(2));
      purity.ExpectSame("3 threads, chunks of 100", [](EngineOptions& options) {
        options.num_threads = 3;
        options.token_budget = 100;
      });
    }
  }
}

// Attention splits at 1,024 positions and merges the parts.
TEST(PuritySlow, HoldsAcrossASplitOfAttention) {
  for (const Form& form : {kForms[0], kForms[3], kSmallPages})
    ExpectPure(Purity(TestData("models/llama-gqa.Q4_1.gguf"), form, Tokens(1100, 256)));
}

TEST(Purity, HoldsForTrainedWeights) {
  const auto path = SharedData("models/stories260K/stories260K-f32.gguf");
  if (!path) GTEST_SKIP() << "no shared data on this machine";
  for (const Form& form : kForms) ExpectPure(Purity(*path, form, Tokens(200, 512)));
}

TEST(PuritySlow, HoldsForSmolLm2) {
  const auto path = CachedModel("SmolLM2-135M-Instruct.Q4_1.gguf");
  if (!path) GTEST_SKIP() << "no SmolLM2 in the cache: tools/fetch_model.sh fetches it";
  for (const Form& form : {kForms[0], kForms[3]})
    ExpectPure(Purity(*path, form, Tokens(70, 49152)), /*portable_count=*/4);
}

// Other sequences in the same call change nothing, be they longer, shorter or the same.
TEST(Purity, NeighboursInABatchChangeNothing) {
  for (const Form& form : kForms)
    for (const uint32_t token_budget : {5u, 512u}) {
      const Purity purity(TestData("models/llama-gqa.Q4_0.gguf"), form, Tokens(150, 256));
      const auto engine = purity.Load(Chunks(token_budget));
      const std::vector<TokenId> other = LcgTokens(7, 90, 256);
      std::vector<Sequence> sequences;
      for (int i = 0; i < 4; ++i) sequences.push_back(engine->NewSequence());
      const SequenceInput inputs[] = {
          {&sequences[0], other, 1},
          {&sequences[1], purity.tokens(), 150},
          {&sequences[2], purity.tokens().first(17), 17},
          {&sequences[3], std::span(other).first(1), 1},
      };
      const auto logits = engine->Compute(inputs);
      ASSERT_TRUE(logits.ok()) << logits.status().message();
      const size_t row = purity.vocab_size();
      ASSERT_EQ(logits->size(), (1 + 150 + 17 + 1) * row);
      const std::string way = "in a batch, chunks of " + std::to_string(token_budget);
      purity.ExpectSameBits(way, logits->subspan(row, 150 * row), 0);
      purity.ExpectSameBits(way + " (a part of it)", logits->subspan(151 * row, 17 * row), 0);
    }
}

// One sequence decodes while others come, are computed and go.
TEST(Purity, NeighboursThatComeAndGoChangeNothing) {
  for (const Form& form : kForms) {
    const Purity purity(TestData("models/llama-gqa.Q8_0.gguf"), form, Tokens(120, 256));
    const auto engine = purity.Load({});
    Sequence sequence = engine->NewSequence();
    for (uint32_t position = 0; position < purity.tokens().size(); ++position) {
      const std::vector<TokenId> other = LcgTokens(position, 1 + position * 37 % 50, 256);
      std::vector<Sequence> neighbours;
      std::vector<SequenceInput> inputs;
      for (uint32_t i = 0; i < position % 3; ++i) neighbours.push_back(engine->NewSequence());
      for (Sequence& neighbour : neighbours) inputs.push_back({&neighbour, other, 0});
      inputs.push_back({&sequence, purity.tokens().subspan(position, 1), 1});
      const auto logits = engine->Compute(inputs);
      ASSERT_TRUE(logits.ok()) << logits.status().message();
      purity.ExpectSameBits("with neighbours", *logits, position);
    }
  }
}

// What was forgotten leaves no trace, also in the part of a page that stays.
TEST(Purity, ASequenceThatWasCutBackGoesOnWithTheSameBits) {
  for (const Form& form : kForms) {
    const Purity purity(TestData("models/llama-gqa.Q4_1.gguf"), form, Tokens(150, 256));
    const auto engine = purity.Load({});
    for (const size_t kept : {0, 1, 63, 64, 65, 100}) {
      Sequence sequence = engine->NewSequence();
      std::vector<TokenId> wrong(purity.tokens().begin(), purity.tokens().begin() + 140);
      for (size_t i = kept; i < wrong.size(); ++i) wrong[i] ^= 5;
      ASSERT_TRUE(engine->Compute(sequence, wrong).ok());
      sequence.Truncate(kept);
      const auto rest = purity.tokens().subspan(kept);
      const auto logits = engine->Compute(sequence, rest, static_cast<uint32_t>(rest.size()));
      ASSERT_TRUE(logits.ok()) << logits.status().message();
      purity.ExpectSameBits("cut back to " + std::to_string(kept), *logits, kept);
    }
  }
}

// That a difference of one bit would be seen: the two activation forms and the two codecs differ.
TEST(Purity, FormsDiffer) {
  std::vector<std::vector<float>> logits;
  for (const Form& form : kForms) {
    EngineOptions options = ExactOptions();
    options.activations = form.activations;
    options.kv_codec = form.kv_codec;
    logits.push_back(ComputeLogits(*LoadRunner(TestData("models/llama-gqa.Q4_1.gguf"), options),
                                   Tokens(20, 256), 19));
  }
  for (size_t i = 0; i < logits.size(); ++i)
    for (size_t j = 0; j < i; ++j) EXPECT_NE(logits[i], logits[j]) << i << " and " << j;
}

}  // namespace
}  // namespace quire
