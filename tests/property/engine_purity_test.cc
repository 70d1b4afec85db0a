// The engine's first promise, for what the engine does to requests: hits in the prefix tree, any
// batch, chunks, threads, forks, preemption, cascade, sealed pages and windows. A text is what the
// model says after some random tokens, token by token, in a sequence of its own; the logits of each
// of its positions must come out with the same bits whenever a request passes there, whichever way.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <tuple>

#include "base/test_data.h"
#include "cache/kv_need.h"
#include "reference/engine_fixture.h"
#include "reference/golden_data.h"

namespace quire {
namespace {

constexpr uint32_t kPageSize = 16;

struct Form {
  ActivationForm activations;
  KvCodec kv_codec;
};
constexpr Form kForms[] = {{ActivationForm::kF32, KvCodec::kF16},
                           {ActivationForm::kF32, KvCodec::kKivi4},
                           {ActivationForm::kInt8, KvCodec::kF16},
                           {ActivationForm::kInt8, KvCodec::kKivi4}};

EngineOptions OptionsOf(const Form& form) {
  EngineOptions options = ExactOptions();
  options.activations = form.activations;
  options.kv_codec = form.kv_codec;
  options.page_size = kPageSize;
  options.kv_memory_bytes = uint64_t{64} << 20;
  options.fill_with_nan = true;
  return options;
}

// A prompt and its greedy continuation; hashes[i] is of the logits that tokens[i] came from, for
// every i after the prompt.
struct Text {
  std::vector<TokenId> tokens;
  std::vector<uint64_t> hashes;
  uint32_t prompt_len;
};

class EnginePurity {
 public:
  // Texts of `length` tokens that share beginnings: the second parts from the first after
  // `shared` tokens, the third shares nothing.
  EnginePurity(std::string path, Form form, uint32_t shared, uint32_t length)
      : path_(std::move(path)), form_(form) {
    const auto runner = LoadRunner(path_, OptionsOf(form));
    const auto vocab_size = static_cast<uint32_t>(runner->model().shape().num_tokens);
    for (uint32_t t = 0; t < 3; ++t) {
      std::vector<TokenId> prompt = LcgTokens(t < 2 ? 5 : 77, shared + 5, vocab_size);
      if (t == 1) prompt[shared] = (prompt[shared] + 1) % static_cast<TokenId>(vocab_size);
      texts_.push_back(Continue(*runner, prompt, length));
    }
  }

  // Some random engine and random requests on it; false at the first difference.
  void RunSchedule(uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto pick = [&](std::initializer_list<uint32_t> from) {
      return from.begin()[random() % from.size()];
    };
    EngineOptions options = OptionsOf(form_);
    // Threads beyond the cores cost much at barriers: few schedules have them.
    options.num_threads = static_cast<int>(pick({1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 3, 4}));
    options.token_budget = pick({1, 7, 64, 64, 512, 512});
    options.cascade = random() % 2 == 0;
    options.max_seqs = pick({1, 2, 8, 32});
    options.eviction = random() % 2 == 0 ? EvictionPolicyKind::kLru : EvictionPolicyKind::kReuse;
    options.keeps_prefixes = random() % 8 != 0;
    const bool is_tight = random() % 2 == 0;
    if (is_tight) options.kv_memory_bytes = TightBudget(random() % 6);
    const auto engine = LoadEngine(path_, options);
    std::vector<Sent> sent;
    const uint32_t num_requests = pick({1, 2, 8, 16});
    for (uint32_t i = 0; i < num_requests; ++i) {
      sent.push_back(Send(*engine, random));
      if (random() % 3 == 0) sent.back().answer->Wait(0, static_cast<uint32_t>(random() % 9));
      if (random() % 6 == 0) engine->Ask([](StepLoop& loop) { loop.PreemptAll(); });
      if (random() % 12 == 0) engine->Abort(sent[random() % sent.size()].answer);
    }
    for (const Sent& s : sent) Check(s, seed);
    engine->Drain();
    engine->Ask([&](StepLoop& loop) {
      const Status status = loop.cache().CheckInvariants();
      EXPECT_TRUE(status.ok()) << status.message() << ", seed " << seed;
      EXPECT_EQ(loop.cache().pool().held_bytes(), 0u);
    });
    num_preemptions_ += engine->stats().num_preemptions;
    num_matched_ += engine->stats().matches.matched_tokens;
  }

  // Every position of the first text as the end of a prompt, again and again on one engine: hits at
  // every page boundary and inside pages.
  void RunEveryHit() {
    const auto engine = LoadEngine(path_, OptionsOf(form_));
    const Text& text = texts_[0];
    for (uint32_t length = text.prompt_len; length < text.tokens.size(); ++length)
      for (int repeat = 0; repeat < 2; ++repeat) Check(Send(*engine, 0, length, 2, 1), length);
    EXPECT_GT(engine->stats().matches.matched_tokens, 0u);
  }

  // Two texts beside each other, preempted after every token.
  void RunPreemptedAlways() {
    const auto engine = LoadEngine(path_, OptionsOf(form_));
    std::vector<Sent> sent;
    engine->Ask([&](StepLoop& loop) {  // step by step, so that no race decides
      for (const uint32_t text : {0u, 2u}) {
        const Text& t = texts_[text];
        Request request{.prompt = {t.tokens.begin(), t.tokens.begin() + t.prompt_len},
                        .keeps_logits_hashes = true};
        request.sampling.temperature = 0;
        request.sampling.ignore_eos = true;
        const auto most = static_cast<uint32_t>(t.tokens.size()) - t.prompt_len;
        sent.push_back({std::make_shared<Answer>(text + 1, request, most), text, t.prompt_len});
        loop.Add(std::move(request), sent.back().answer, most);
      }
      while (loop.has_work()) {
        loop.Step();
        loop.PreemptAll();
      }
    });
    for (const Sent& s : sent) Check(s, 0);
    EXPECT_GT(engine->stats().num_preemptions, 20u);
  }

  uint64_t num_compared() const { return num_compared_; }
  uint64_t num_preemptions() const { return num_preemptions_; }
  uint64_t num_matched() const { return num_matched_; }

 private:
  struct Sent {
    std::shared_ptr<Answer> answer;
    uint32_t text;
    uint32_t length;  // of its tokens that are the prompt
  };

  static Text Continue(ModelRunner& runner, std::vector<TokenId> tokens, uint32_t length) {
    Text text{.tokens = {}, .hashes = {}, .prompt_len = static_cast<uint32_t>(tokens.size())};
    text.hashes.resize(tokens.size());
    Sequence sequence = runner.NewSequence();
    std::span<const TokenId> next = tokens;
    TokenId last = 0;
    while (tokens.size() < length) {
      const auto logits = runner.Compute(sequence, next);
      QUIRE_CHECK(logits.ok());
      text.hashes.push_back(HashOfLogits(logits.value()));
      last = ArgMax(logits.value().first(static_cast<size_t>(runner.model().shape().num_tokens)));
      tokens.push_back(last);
      next = {&last, 1};
    }
    text.tokens = std::move(tokens);
    return text;
  }

  // The longest text fits, alone, with `more` pages beside it.
  size_t TightBudget(uint64_t more) {
    if (least_bytes_ == 0) {
      const auto runner = LoadRunner(path_, OptionsOf(form_));
      const KvShape& shape = runner->cache().shape();
      least_bytes_ = LeastBytes(shape, static_cast<uint32_t>(texts_[0].tokens.size()));
      page_bytes_ = HeldBytes(shape, kPageSize);
    }
    return least_bytes_ + more * page_bytes_;
  }

  Sent Send(Engine& engine, uint32_t text, uint32_t length, uint32_t max_tokens,
            uint32_t num_choices) {
    const auto& tokens = texts_[text].tokens;
    Request request;
    request.prompt.assign(tokens.begin(), tokens.begin() + length);
    request.max_tokens =
        std::min<uint32_t>(max_tokens, static_cast<uint32_t>(tokens.size()) - length);
    request.num_choices = num_choices;
    request.sampling.temperature = 0;
    request.sampling.ignore_eos = true;
    request.keeps_logits_hashes = true;
    auto answer = engine.Submit(std::move(request));
    EXPECT_TRUE(answer.ok()) << answer.status().message();
    return {std::move(answer).value(), text, length};
  }

  Sent Send(Engine& engine, std::mt19937_64& random) {
    const auto text = static_cast<uint32_t>(random() % 3);
    const Text& t = texts_[text];
    const auto length =
        t.prompt_len + static_cast<uint32_t>(random() % (t.tokens.size() - t.prompt_len));
    const auto max_tokens = static_cast<uint32_t>(1 + random() % 40);
    return Send(engine, text, length, max_tokens, random() % 6 == 0 ? 3 : 1);
  }

  void Check(const Sent& sent, uint64_t seed) {
    const Text& text = texts_[sent.text];
    for (uint32_t choice = 0; choice < sent.answer->num_choices(); ++choice) {
      const uint32_t count = sent.answer->Wait(choice, UINT32_MAX);
      ASSERT_TRUE(sent.answer->status(choice).ok()) << sent.answer->status(choice).message();
      for (uint32_t i = 0; i < count; ++i) {
        ++num_compared_;
        ASSERT_EQ(sent.answer->logits_hash(choice, i), text.hashes[sent.length + i])
            << path_ << ", seed " << seed << ": position " << sent.length + i << " of text "
            << sent.text << ", " << i << " after a prompt of " << sent.length << ", "
            << sent.answer->prompt().num_cached << " cached, preempted "
            << sent.answer->num_preemptions() << " times";
      }
    }
  }

  std::string path_;
  Form form_;
  std::vector<Text> texts_;
  size_t least_bytes_ = 0, page_bytes_ = 0;
  uint64_t num_compared_ = 0, num_preemptions_ = 0, num_matched_ = 0;
};

// A model's name and which of kForms.
using Param = std::tuple<const char*, size_t>;

class EnginePurityOf : public ::testing::TestWithParam<Param> {
 protected:
  // Nothing without the shared data.
  static std::optional<std::string> Path() {
    const std::string name = std::get<0>(GetParam());
    if (name.starts_with("llama-gqa") || name == "llama-mqa")
      return TestData("models/" + name + ".gguf");
    return SharedData("models/rplus/" + name + ".gguf");
  }
  static const Form& FormOf() { return kForms[std::get<1>(GetParam())]; }
};

// 32 models and forms: 1,024 schedules.
TEST_P(EnginePurityOf, NoBitDependsOnTheSchedule) {
  const auto path = Path();
  if (!path) GTEST_SKIP() << "no shared data on this machine";
  EnginePurity purity(*path, FormOf(), /*shared=*/40, /*length=*/110);
  for (uint64_t seed = 0; seed < 32 && !HasFatalFailure(); ++seed) purity.RunSchedule(seed);
  EXPECT_GT(purity.num_compared(), 2'000u);
  EXPECT_GT(purity.num_preemptions(), 10u);
  EXPECT_GT(purity.num_matched(), 2'000u);
}

TEST_P(EnginePurityOf, NoBitDependsOnPreemptionAfterAnyStep) {
  const auto path = Path();
  if (!path) GTEST_SKIP() << "no shared data on this machine";
  EnginePurity(*path, FormOf(), /*shared=*/10, /*length=*/80).RunPreemptedAlways();
}

TEST_P(EnginePurityOf, NoBitDependsOnWhereAHitEnds) {
  const auto path = Path();
  if (!path) GTEST_SKIP() << "no shared data on this machine";
  EnginePurity(*path, FormOf(), /*shared=*/10, /*length=*/80).RunEveryHit();
}

INSTANTIATE_TEST_SUITE_P(
    Rplus, EnginePurityOf,
    ::testing::Combine(::testing::Values("llama-gqa", "llama-mqa", "llama-gqa.Q4_1", "qwen3",
                                         "gemma3", "q-qwen3-q40", "q-gemma3-iq4nl", "q-llama-q4km"),
                       ::testing::Range<size_t>(0, std::size(kForms))),
    [](const auto& param) {
      std::string name = std::get<0>(param.param);
      std::replace_if(
          name.begin(), name.end(), [](char c) { return c == '-' || c == '.'; }, '_');
      const Form& form = kForms[std::get<1>(param.param)];
      return name + (form.activations == ActivationForm::kF32 ? "_f32_" : "_int8_") +
             std::string(KvCodecName(form.kv_codec));
    });

}  // namespace
}  // namespace quire
