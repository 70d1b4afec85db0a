// The promise of purity_test.cc for sequences that share pages: in one step, with cascade and
// without, each has the logits of the same tokens alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>

#include "base/test_data.h"
#include "reference/forward_fixture.h"
#include "reference/golden_data.h"

namespace quire {
namespace {

struct Form {
  const char* name;
  KvFormOptions kv;
  ActivationForm activations = ActivationForm::kInt8;
};
constexpr KvCodec kKivi = KvCodec::kKivi4;
const Form kForms[] = {
    {"f16", {}},
    {"f32", {.k_codec = KvCodec::kF32, .v_codec = KvCodec::kF32}, ActivationForm::kF32},
    {"kivi4", {.k_codec = kKivi, .v_codec = kKivi}},
    {"kivi4, one recent page", {.k_codec = kKivi, .v_codec = kKivi, .recent_pages = 1}},
};
constexpr uint32_t kPageSize = 16;

// A sequence whose first pages are those of another one.
class Reader {
 public:
  Reader(const ForwardRunner& runner, Reader* from, uint32_t shared_pages,
         std::vector<TokenId> tokens)
      : from_(from),
        shared_pages_(shared_pages),
        tokens_(std::move(tokens)),
        own_(runner.MakeKv(length())) {}

  uint32_t length() const { return static_cast<uint32_t>(tokens_.size()); }
  uint32_t num_shared() const { return shared_pages_ * kPageSize; }
  std::span<const TokenId> tokens() const { return tokens_; }

  // Tokens [begin, end), with logits of the last `num_logits`; valid until the next call.
  ForwardSequence Rows(uint32_t begin, uint32_t end, uint32_t num_logits) {
    SetTables(begin, end);
    return {.tokens = std::span(tokens_).subspan(begin, end - begin),
            .first_position = begin,
            .first_append = num_shared(),
            .first_seal = shared_pages_,
            .kv = views_,
            .num_logits = num_logits};
  }

 private:
  struct Tables {
    std::vector<std::byte*> open, sealed;
  };

  void SetTables(uint32_t begin, uint32_t end) {
    own_.Prepare(begin, end);
    if (from_ != nullptr) from_->SetTables(begin, end);
    tables_.clear();
    views_.clear();
    for (size_t group = 0; group < own_.views().size(); ++group) {
      const KvView& own = own_.views()[group];
      Tables& tables = tables_.emplace_back();
      tables.open.assign(own.pages, own.pages + own.num_pages);
      if (own.sealed != nullptr) tables.sealed.assign(own.sealed, own.sealed + own.num_pages);
      if (from_ != nullptr) {
        const KvView& other = from_->views_[group];
        std::copy_n(other.pages, shared_pages_, tables.open.begin());
        if (own.sealed != nullptr) std::copy_n(other.sealed, shared_pages_, tables.sealed.begin());
      }
      views_.push_back({.pages = tables.open.data(),
                        .sealed = own.sealed == nullptr ? nullptr : tables.sealed.data(),
                        .num_pages = own.num_pages});
    }
  }

  Reader* from_;
  uint32_t shared_pages_;
  std::vector<TokenId> tokens_;
  TestKv own_;
  std::deque<Tables> tables_;
  std::vector<KvView> views_;
};

// One that the others begin as, at different pages; some of those again begin as another.
struct Kin {
  int from = -1;
  uint32_t shared_pages = 0;
  uint32_t num_own = 0;
  uint32_t num_rows = 1;  // in the step
};

class Family {
 public:
  Family(ForwardRunner& runner, std::span<const Kin> kin) {
    const auto vocab_size = static_cast<uint32_t>(runner.vocab_size());
    for (size_t i = 0; i < kin.size(); ++i) {
      Reader* from = kin[i].from < 0 ? nullptr : &readers_[static_cast<size_t>(kin[i].from)];
      const uint32_t num_shared = kin[i].shared_pages * kPageSize;
      std::vector<TokenId> tokens;
      if (from != nullptr)
        tokens.assign(from->tokens().begin(), from->tokens().begin() + num_shared);
      const auto own = LcgTokens(100 + i, kin[i].num_own, vocab_size);
      tokens.insert(tokens.end(), own.begin(), own.end());
      Reader& reader = readers_.emplace_back(runner, from, kin[i].shared_pages, std::move(tokens));
      num_rows_.push_back(kin[i].num_rows);
      // Alone, in chunks, up to its rows; and then those.
      const uint32_t before = reader.length() - kin[i].num_rows;
      for (uint32_t begin = num_shared; begin < before; begin += 64) {
        const ForwardSequence rows = reader.Rows(begin, std::min(before, begin + 64), 0);
        runner.Step({&rows, 1});
      }
      const ForwardSequence rows = reader.Rows(before, reader.length(), kin[i].num_rows);
      const auto logits = runner.Step({&rows, 1});
      alone_.insert(alone_.end(), logits.begin(), logits.end());
    }
  }

  // All in one step.
  std::vector<float> Together(ForwardRunner& runner) {
    std::vector<ForwardSequence> sequences;
    // The tables of a reader that others have pages of are set anew for those, and it comes last.
    for (size_t i = readers_.size(); i-- > 0;) {
      Reader& reader = readers_[i];
      sequences.push_back(
          reader.Rows(reader.length() - num_rows_[i], reader.length(), num_rows_[i]));
    }
    std::reverse(sequences.begin(), sequences.end());
    return runner.Step(sequences);
  }
  const std::vector<float>& alone() const { return alone_; }

 private:
  std::deque<Reader> readers_;
  std::vector<uint32_t> num_rows_;
  std::vector<float> alone_;
};

bool SameBits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

const Kin kKin[] = {
    {.num_own = 250},
    {.from = 0, .shared_pages = 12, .num_own = 30},
    {.from = 0, .shared_pages = 12, .num_own = 31, .num_rows = 4},
    {.from = 1, .shared_pages = 13, .num_own = 1},
    {.from = 0, .shared_pages = 15, .num_own = 9, .num_rows = 2},
    {.from = 0, .shared_pages = 6, .num_own = 120, .num_rows = 70},
    {.num_own = 20},
    {.from = 5, .shared_pages = 12, .num_own = 40},
    {.from = 5, .shared_pages = 12, .num_own = 47},
};

void ExpectPure(const Model& model) {
  for (const Form& form : kForms) {
    SCOPED_TRACE(form.name);
    RunnerOptions options = {
        .kv = form.kv, .page_size = kPageSize, .activations = form.activations};
    ForwardRunner alone(model, options);
    Family family(alone, kKin);
    uint64_t chunks_read[2] = {};  // without and with cascade, of one thread
    for (const bool cascade : {true, false})
      for (const int num_threads : {1, 2, 4})
        for (const InstructionSet set : AvailableInstructionSets()) {
          if (set != options.instruction_set && num_threads != 2) continue;
          RunnerOptions other = options;
          other.cascade = cascade;
          other.num_threads = num_threads;
          other.instruction_set = set;
          ForwardRunner together(model, other);
          EXPECT_TRUE(SameBits(family.Together(together), family.alone()))
              << (cascade ? "cascade, " : "") << num_threads << " threads, "
              << InstructionSetName(set);
          if (num_threads == 1) chunks_read[cascade] = together.forward().num_chunks_read();
        }
    EXPECT_LT(chunks_read[true], chunks_read[false]);
  }
}

TEST(CascadePurity, SequencesThatSharePagesHaveTheirOwnBits) {
  for (const char* name : {"llama-gqa.Q8_0", "llama-mha", "llama-mqa", "llama-hd80"}) {
    SCOPED_TRACE(name);
    ExpectPure(*LoadModel(TestData("models/" + std::string(name) + ".gguf")));
  }
}

// Layers with windows, and without.
TEST(CascadePurity, HoldsForEveryArchitecture) {
  for (const char* name : {"gemma3", "gemma3-p3", "qwen3"}) {
    SCOPED_TRACE(name);
    const auto path = SharedData("models/rplus/" + std::string(name) + ".gguf");
    if (!path) GTEST_SKIP() << "no shared data on this machine";
    ExpectPure(*LoadModel(*path));
  }
}

// PFX-18: 32 readers of a prefix of 4,096 tokens in pages of 16 load each of its chunks once, 256
// for each layer and KV head, instead of 8,192.
TEST(CascadePurity, ASharedPrefixIsReadOnceForAllReaders) {
  const auto model = LoadModel(TestData("models/llama-gqa.Q8_0.gguf"));
  std::vector<Kin> kin = {{.num_own = 4097}};
  for (int i = 1; i < 32; ++i) kin.push_back({.from = 0, .shared_pages = 256, .num_own = 1});
  for (const KvFormOptions& kv :
       {KvFormOptions{}, KvFormOptions{.k_codec = kKivi, .v_codec = kKivi}}) {
    RunnerOptions options = {.kv = kv, .page_size = kPageSize, .num_threads = 2};
    ForwardRunner runner(*model, options);
    Family family(runner, kin);
    options.cascade = false;
    ForwardRunner without(*model, options);
    const uint64_t chunks =
        model->shape().layers.size() * static_cast<uint64_t>(model->shape().num_kv_heads);
    const uint64_t before = runner.forward().num_chunks_read();
    EXPECT_TRUE(SameBits(family.Together(runner), family.alone()));
    EXPECT_EQ(runner.forward().num_chunks_read() - before, chunks * (256 + 32));
    EXPECT_TRUE(SameBits(family.Together(without), family.alone()));
    EXPECT_EQ(without.forward().num_chunks_read(), chunks * (8192 + 32));
  }
}

}  // namespace
}  // namespace quire
