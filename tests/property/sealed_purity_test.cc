// The promise of purity_test.cc for codecs whose pages are sealed: a position's logits, and the
// bytes of the sealed pages, are the same whichever way a sequence got there. What the read rule
// does not name is not there: its table entry is null.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <fstream>
#include <limits>

#include "base/test_data.h"
#include "model/gguf_file.h"
#include "reference/forward_fixture.h"
#include "reference/golden_data.h"
#include "reference/reference_forward.h"

namespace quire {
namespace {

constexpr KvCodec kKivi = KvCodec::kKivi4;

struct Form {
  const char* name;
  KvFormOptions kv;
  uint32_t page_size;
  ActivationForm activations;
};
const Form kForms[] = {
    {"kivi4, int8", {.k_codec = kKivi, .v_codec = kKivi}, 16, ActivationForm::kInt8},
    {"kivi4, no sink",
     {.k_codec = kKivi, .v_codec = kKivi, .sink_pages = 0},
     32,
     ActivationForm::kF32},
    {"K kivi4, V f16, one recent page",
     {.k_codec = kKivi, .v_codec = KvCodec::kF16, .sink_pages = 1, .recent_pages = 1},
     16,
     ActivationForm::kInt8},
    {"K f32, V kivi4", {.k_codec = KvCodec::kF32, .v_codec = kKivi}, 48, ActivationForm::kInt8},
};

bool SameBits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

// All sealed pages of a sequence of `length` tokens.
std::vector<std::byte> SealedBytes(const ForwardRunner& runner, const TestKv& kv, uint32_t length) {
  std::vector<std::byte> bytes;
  for (size_t group = 0; group < runner.groups().size(); ++group) {
    const KvForms& forms = runner.forms()[group];
    for (uint32_t page = forms.rule.sink_pages; page < length / forms.open.layout.page_size;
         ++page) {
      const auto own = kv.sealed_page(group, page);
      bytes.insert(bytes.end(), own.begin(), own.end());
    }
  }
  return bytes;
}

struct Way {
  uint32_t chunk;
  int num_threads = 1;
  InstructionSet set = AvailableInstructionSets().back();
};

void ExpectPure(const Model& model, const Form& form, uint32_t length) {
  SCOPED_TRACE(form.name);
  const std::vector<TokenId> tokens =
      LcgTokens(12345, length, static_cast<uint32_t>(model.shape().vocab_size));
  std::vector<float> want;
  std::vector<std::byte> want_bytes;
  std::vector<Way> ways = {{length}, {1}, {7}, {64}, {100, 2}, {1, 2}, {30, 3}};
  for (const InstructionSet set : AvailableInstructionSets())  // portable code is slow
    if (set != InstructionSet::kPortable || length <= 200) ways.push_back({50, 1, set});
  for (const Way& way : ways) {
    ForwardRunner runner(model, {.kv = form.kv,
                                 .page_size = form.page_size,
                                 .num_threads = way.num_threads,
                                 .activations = form.activations,
                                 .instruction_set = way.set,
                                 .max_rows = length});
    TestKv kv = runner.MakeKv(length);
    const auto logits = runner.Compute(kv, tokens, 0, way.chunk);
    const auto bytes = SealedBytes(runner, kv, length);
    ASSERT_TRUE(std::none_of(logits.begin(), logits.end(), [](float x) { return x != x; }));
    if (want.empty()) want = logits, want_bytes = bytes;
    EXPECT_TRUE(SameBits(logits, want)) << "chunks of " << way.chunk << ", " << way.num_threads
                                        << " threads, " << InstructionSetName(way.set);
    EXPECT_TRUE(bytes == want_bytes)
        << "sealed pages: chunks of " << way.chunk << ", " << InstructionSetName(way.set);
  }
}

TEST(SealedPurity, EveryWayGivesTheSameBitsAndPages) {
  for (const char* name : {"llama-gqa.Q8_0", "llama-hd80"}) {
    SCOPED_TRACE(name);
    const auto model = LoadModel(TestData("models/" + std::string(name) + ".gguf"));
    for (const Form& form : kForms) ExpectPure(*model, form, 200);
  }
}

// Layers with windows, and without.
TEST(SealedPurity, HoldsForEveryArchitecture) {
  for (const char* name : {"gemma3", "gemma3-p3", "qwen3", "q-qwen2-q8"}) {
    SCOPED_TRACE(name);
    const auto path = SharedData("models/rplus/" + std::string(name) + ".gguf");
    if (!path) GTEST_SKIP() << "no shared data on this machine";
    const auto model = LoadModel(*path);
    for (const Form& form : kForms) ExpectPure(*model, form, 120);
  }
}

TEST(PuritySlow, SealedPagesAcrossASplitOfAttention) {
  const auto model = LoadModel(TestData("models/llama-gqa.Q4_0.gguf"));
  ExpectPure(*model, kForms[0], 1100);
  ExpectPure(*model, kForms[3], 1100);
}

// That sealed pages are read at all, and that the rule matters.
TEST(SealedPurity, FormsDiffer) {
  const auto model = LoadModel(TestData("models/llama-gqa.Q8_0.gguf"));
  const std::vector<TokenId> tokens = LcgTokens(1, 100, 256);
  std::vector<std::vector<float>> all;
  for (const KvFormOptions& kv :
       {KvFormOptions{}, KvFormOptions{.k_codec = kKivi}, KvFormOptions{.v_codec = kKivi},
        KvFormOptions{.k_codec = kKivi, .sink_pages = 0},
        KvFormOptions{.k_codec = kKivi, .recent_pages = 1}}) {
    ForwardRunner runner(*model, {.kv = kv, .page_size = 16});
    TestKv kv_pages = runner.MakeKv(100);
    all.push_back(runner.Compute(kv_pages, tokens, 0, 100));
  }
  const size_t row = 256;
  for (size_t i = 0; i < all.size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      EXPECT_FALSE(SameBits(all[i], all[j])) << i << " and " << j;
      // The first page is read open by its own queries, in all forms.
      EXPECT_TRUE(SameBits(std::span(all[i]).first(16 * row), std::span(all[j]).first(16 * row)));
    }
}

// The codec's arithmetic and the read rule, written again in doubles and without pages. A rounding
// that falls the other way moves one code, so errors are compared with what the codec costs.
TEST(SealedPurity, AgreesWithTheDoubleReference) {
  std::vector<std::string> paths = {TestData("models/llama-gqa.gguf"),
                                    TestData("models/llama-hd80.gguf")};
  for (const char* name : {"gemma3", "qwen3"})
    if (const auto path = SharedData("models/rplus/" + std::string(name) + ".gguf"))
      paths.push_back(*path);
  for (const std::string& path : paths) {
    const auto model = LoadModel(path);
    const auto reference = ReferenceModel::Load(path);
    ASSERT_TRUE(reference.ok());
    const std::vector<TokenId> tokens =
        LcgTokens(5, 100, static_cast<uint32_t>(model->shape().vocab_size));
    const std::vector<double> exact = reference->Logits(tokens);
    for (const Form& form : kForms) {
      SCOPED_TRACE(path + ", " + form.name);
      ForwardRunner runner(*model, {.kv = form.kv, .page_size = form.page_size});
      TestKv kv = runner.MakeKv(100);
      const std::vector<double> got = ToDouble(runner.Compute(kv, tokens, 0, 100));
      const std::vector<double> want =
          reference->Logits(tokens, 0, KvEmulation(form.kv, form.page_size));
      const Difference cost = Compare(want, exact), error = Compare(got, want);
      EXPECT_LT(error.rel_rms, 0.25 * cost.rel_rms) << error << " of " << cost;  // 0.14 measured
    }
  }
}

// The last token of a prompt that is cached whole, and a page that is computed anew behind sealed
// ones: nothing is written before first_append and first_seal.
TEST(SealedPurity, CachedTokensAreComputedAgainWithoutAWrite) {
  const auto model = LoadModel(TestData("models/llama-gqa.Q8_0.gguf"));
  const std::vector<TokenId> tokens = LcgTokens(2, 64, 256);
  for (const Form& form : {kForms[0], kForms[2]}) {
    ForwardRunner runner(*model, {.kv = form.kv, .page_size = 16, .activations = form.activations});
    TestKv kv = runner.MakeKv(64);
    const auto want = runner.Compute(kv, tokens, 0, 64);
    const size_t row = runner.vocab_size();
    const auto sealed = SealedBytes(runner, kv, 64);
    std::vector<std::vector<std::byte>> open;
    for (uint32_t page = 0; page < 4; ++page)
      open.emplace_back(kv.open_page(0, page).begin(), kv.open_page(0, page).end());
    for (const uint32_t first : {63u, 60u, 48u}) {
      kv.Prepare(first, 64);
      const ForwardSequence again = {.tokens = std::span(tokens).subspan(first),
                                     .first_position = first,
                                     .first_append = 64,
                                     .kv = kv.views(),
                                     .num_logits = 64 - first};
      EXPECT_TRUE(SameBits(runner.Step({&again, 1}), std::span(want).subspan(first * row)));
    }
    // Page 3 is sealed already: its open form is made again, and the sealed one is not touched.
    kv.Prepare(48, 64);
    std::memset(const_cast<std::byte*>(kv.sealed_page(0, 3).data()), 0x11,
                kv.sealed_page(0, 3).size());
    const ForwardSequence anew = {.tokens = std::span(tokens).subspan(48),
                                  .first_position = 48,
                                  .first_seal = 4,
                                  .kv = kv.views(),
                                  .num_logits = 16};
    EXPECT_TRUE(SameBits(runner.Step({&anew, 1}), std::span(want).subspan(48 * row)));
    for (const std::byte b : kv.sealed_page(0, 3)) ASSERT_EQ(b, std::byte{0x11});
    for (uint32_t page = 0; page < 4; ++page)
      EXPECT_TRUE(std::equal(open[page].begin(), open[page].end(), kv.open_page(0, page).begin()));
    // Without first_seal it is sealed again, to the same bytes.
    ForwardSequence seals = anew;
    seals.first_seal = 0;
    EXPECT_TRUE(SameBits(runner.Step({&seals, 1}), std::span(want).subspan(48 * row)));
    EXPECT_TRUE(SealedBytes(runner, kv, 64) == sealed);
  }
}

// A copy of the small model in which the embedding of one token holds a NaN.
std::string ModelWithBadToken(TokenId token) {
  const auto file = GgufFile::Open(TestData("models/llama-gqa.gguf"));
  QUIRE_CHECK(file.ok());
  const GgufTensor* tensor = file->header().FindTensor("token_embd.weight");
  std::ifstream input(TestData("models/llama-gqa.gguf"), std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(input), {}};
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const size_t row_bytes = static_cast<size_t>(tensor->columns()) * sizeof(float);
  std::memcpy(bytes.data() + tensor->file_offset + static_cast<size_t>(token) * row_bytes, &nan,
              sizeof nan);
  const std::string path = testing::TempDir() + "/quire-bad-token.gguf";
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

// [the fault of one sequence] stays its own: it is named, and the others have their bits.
TEST(SealedPurity, ANanFailsItsSequenceOnly) {
  const auto model = LoadModel(ModelWithBadToken(7));
  std::vector<TokenId> good = LcgTokens(3, 40, 256), bad;
  std::replace(good.begin(), good.end(), 7, 8);
  bad = good;
  bad[33] = 7;
  for (const Form& form : kForms)
    for (const int num_threads : {1, 2}) {
      ForwardRunner runner(*model, {.kv = form.kv,
                                    .page_size = form.page_size,
                                    .num_threads = num_threads,
                                    .activations = form.activations});
      TestKv alone = runner.MakeKv(40);
      const auto want = runner.Compute(alone, good, 0, 40);
      EXPECT_EQ(runner.forward().bad_layer(0), -1);
      TestKv kv[3] = {runner.MakeKv(40), runner.MakeKv(40), runner.MakeKv(40)};
      std::vector<ForwardSequence> step;
      for (size_t i = 0; i < 3; ++i) {
        kv[i].Prepare(0, 40);
        step.push_back({.tokens = i == 1 ? bad : good,
                        .first_position = 0,
                        .kv = kv[i].views(),
                        .num_logits = i == 1 ? 0u : 40u});
      }
      const auto logits = runner.Step(step);
      EXPECT_EQ(runner.forward().bad_layer(0), -1);
      EXPECT_EQ(runner.forward().bad_layer(1), 0);
      EXPECT_EQ(runner.forward().bad_layer(2), -1);
      EXPECT_TRUE(SameBits(std::span(logits).first(want.size()), want));
      EXPECT_TRUE(SameBits(std::span(logits).subspan(want.size()), want));
    }
}

// Two sequences share sealed pages and decode together: a cascade over them changes no bit.
TEST(SealedPurity, ReadersOfSharedPagesHaveTheBitsOfEachAlone) {
  const auto model = LoadModel(TestData("models/llama-gqa.Q8_0.gguf"));
  const std::vector<TokenId> prefix = LcgTokens(4, 160, 256);
  for (const Form& form : kForms) {
    SCOPED_TRACE(form.name);
    ForwardRunner runner(
        *model, {.kv = form.kv, .page_size = form.page_size, .activations = form.activations});
    const uint32_t p = form.page_size;
    TestKv kv = runner.MakeKv(320);
    runner.Compute(kv, prefix, 0, 160);
    const uint32_t num_shared = 144 / p;  // pages
    constexpr size_t kReaders = 4;
    std::vector<TestKv> own;
    for (size_t i = 0; i < kReaders; ++i) own.push_back(runner.MakeKv(320));
    std::vector<std::vector<std::byte*>> open(kReaders), sealed(kReaders);
    std::vector<KvView> views(kReaders);
    std::vector<std::vector<float>> want(kReaders), got(kReaders);
    const auto tokens_of = [&](size_t i) {
      std::vector<TokenId> tokens(prefix.begin(), prefix.begin() + num_shared * p);
      const auto tail = LcgTokens(static_cast<uint32_t>(10 + i), 60, 256);
      tokens.insert(tokens.end(), tail.begin(), tail.end());
      return tokens;
    };
    const size_t row = runner.vocab_size();
    for (size_t i = 0; i < kReaders; ++i) {
      TestKv alone = runner.MakeKv(320);
      want[i] = runner.Compute(alone, tokens_of(i), 0, 320);
      want[i].erase(want[i].begin(), want[i].begin() + num_shared * p * row);
    }
    // In steps of one token for each, all entries there: rows of each read what the rule says.
    for (uint32_t at = num_shared * p; at < num_shared * p + 60; ++at) {
      std::vector<ForwardSequence> step;
      std::vector<std::vector<TokenId>> tokens(kReaders);
      for (size_t i = 0; i < kReaders; ++i) {
        kv.Prepare(at, 320);
        own[i].Prepare(at, 320);
        const KvView shared = kv.views()[0], mine = own[i].views()[0];
        open[i].assign(shared.pages, shared.pages + num_shared);
        open[i].insert(open[i].end(), mine.pages + num_shared, mine.pages + mine.num_pages);
        sealed[i].assign(shared.sealed, shared.sealed + num_shared);
        sealed[i].insert(sealed[i].end(), mine.sealed + num_shared, mine.sealed + mine.num_pages);
        views[i] = {
            .pages = open[i].data(), .sealed = sealed[i].data(), .num_pages = mine.num_pages};
        tokens[i] = {tokens_of(i)[at]};
        step.push_back(
            {.tokens = tokens[i], .first_position = at, .kv = {&views[i], 1}, .num_logits = 1});
      }
      const auto logits = runner.Step(step);
      for (size_t i = 0; i < kReaders; ++i)
        got[i].insert(got[i].end(), logits.begin() + static_cast<ptrdiff_t>(i * row),
                      logits.begin() + static_cast<ptrdiff_t>((i + 1) * row));
    }
    for (size_t i = 0; i < kReaders; ++i) EXPECT_TRUE(SameBits(got[i], want[i])) << i;
  }
}

}  // namespace
}  // namespace quire
