#include "cli/purity_checks.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "base/errors.h"
#include "base/instruction_set.h"
#include "base/seconds.h"
#include "cache/kv_need.h"
#include "cli/answer_checks.h"
#include "cli/position_bits.h"
#include "cli/workload.h"

namespace quire {
namespace {

constexpr uint32_t kCallLen = 64;      // tokens of a call whose logits are all looked at
constexpr uint32_t kPortableLen = 17;  // plain code is slow
constexpr uint64_t kSeed = 20261130;

// The ways of one sequence through ModelRunner, without the scheduler and the prefix tree.
class PositionChecks {
 public:
  PositionChecks(std::shared_ptr<const Model> model, const EngineOptions& options,
                 const PurityLengths& lengths, CheckList& list)
      : model_(std::move(model)),
        options_(options),
        num_tokens_(static_cast<uint32_t>(model_->shape().num_tokens)),
        vocab_size_(static_cast<size_t>(model_->shape().vocab_size)),
        list_(list) {
    tokens_ = MakePrompt({{OwnPiece(0, lengths.prompt_len())}}, kSeed, num_tokens_);
    mate_ = MakePrompt({{OwnPiece(1, lengths.prompt_len())}}, kSeed, num_tokens_);
  }

  void Run() {
    list_.Run("positions, one after another", [&](std::string& detail) -> Status {
      QUIRE_ASSIGN_OR_RETURN(want_, Compute({}, kCallLen));
      detail = fmt::format("{} positions", want_.size());
      return OkStatus();
    });
    if (want_.size() != tokens_.size()) return;  // it failed: nothing to compare with
    for (const uint32_t chunk : {1u, 7u, static_cast<uint32_t>(tokens_.size())})
      Expect(
          chunk > kCallLen ? "the whole prompt in one step" : fmt::format("chunks of {}", chunk),
          [=](EngineOptions& options) { options.token_budget = chunk; },
          chunk > kCallLen ? chunk : kCallLen);
    std::set<int> counts = {1};
    for (int n = 2; n < options_.num_threads; n *= 2) counts.insert(n);
    for (const int n : counts)
      if (n < options_.num_threads)
        Expect(
            fmt::format("{} thread{}", n, n > 1 ? "s" : ""),
            [=](EngineOptions& options) { options.num_threads = n; }, kCallLen);
    for (const InstructionSet set : AvailableInstructionSets())
      if (set != options_.instruction_set)
        Expect(
            fmt::format("{} kernels", InstructionSetName(set)),
            [=](EngineOptions& options) { options.instruction_set = set; }, kCallLen,
            set == InstructionSet::kPortable ? kPortableLen : UINT32_MAX);
    list_.Run("beside another sequence", [&](std::string&) { return BesideAnother(); });
    list_.Run("forked, one fork goes another way", [&](std::string&) { return Forked(); });
    list_.Run("cut back and computed again", [&](std::string&) { return CutBack(); });
  }

 private:
  using Change = std::function<void(EngineOptions&)>;

  void Expect(const std::string& name, const Change& change, uint32_t call_len,
              uint32_t most = UINT32_MAX) {
    list_.Run(name, [&](std::string&) -> Status {
      QUIRE_ASSIGN_OR_RETURN(const auto got, Compute(change, call_len, most));
      return CheckList::NoDifference(FirstDifference(want_, got));
    });
  }

  StatusOr<std::unique_ptr<ModelRunner>> NewRunner(const Change& change) const {
    EngineOptions options = options_;
    if (change) change(options);
    return ModelRunner::Create(model_, options);
  }

  // Positions [first, first + n) from their logits.
  void Add(std::span<const float> logits, uint32_t first, std::vector<PositionBits>& bits) const {
    for (uint32_t i = 0; i < logits.size() / vocab_size_; ++i) {
      const uint32_t position = first + i;
      const TokenId next = position + 1 < tokens_.size() ? tokens_[position + 1] : 0;
      bits.push_back(
          BitsOf(position, logits.subspan(i * vocab_size_, vocab_size_), num_tokens_, next));
    }
  }

  // Goes on with `sequence` up to `end`, and looks at the last kCallLen positions of each call.
  Status Extend(ModelRunner& runner, Sequence& sequence, uint32_t end, uint32_t call_len,
                std::vector<PositionBits>& bits) const {
    while (sequence.tokens().size() < end) {
      const auto begin = static_cast<uint32_t>(sequence.tokens().size());
      const uint32_t count = std::min(call_len, end - begin);
      const uint32_t num_logits = std::min(count, kCallLen);
      QUIRE_ASSIGN_OR_RETURN(
          const auto logits,
          runner.Compute(sequence, std::span(tokens_).subspan(begin, count), num_logits));
      Add(logits, begin + count - num_logits, bits);
    }
    return list_.LookAt(runner.cache(), /*at_rest=*/false);
  }

  StatusOr<std::vector<PositionBits>> Compute(const Change& change, uint32_t call_len,
                                              uint32_t most = UINT32_MAX) const {
    QUIRE_ASSIGN_OR_RETURN(const auto runner, NewRunner(change));
    std::vector<PositionBits> bits;
    {
      Sequence sequence = runner->NewSequence();
      const auto end = std::min(most, static_cast<uint32_t>(tokens_.size()));
      QUIRE_RETURN_IF_ERROR(Extend(*runner, sequence, end, call_len, bits));
    }
    QUIRE_RETURN_IF_ERROR(list_.LookAt(runner->cache(), /*at_rest=*/true));
    return bits;
  }

  Status BesideAnother() const {
    QUIRE_ASSIGN_OR_RETURN(const auto runner,
                           NewRunner([](EngineOptions& options) { options.token_budget = 48; }));
    Sequence own = runner->NewSequence(), mate = runner->NewSequence();
    std::vector<PositionBits> bits;
    for (uint32_t begin = 0; begin < tokens_.size(); begin += kCallLen) {
      const auto count = std::min(kCallLen, static_cast<uint32_t>(tokens_.size()) - begin);
      const SequenceInput inputs[] = {{&mate, std::span(mate_).subspan(begin, count), 1},
                                      {&own, std::span(tokens_).subspan(begin, count), count}};
      QUIRE_ASSIGN_OR_RETURN(const auto logits, runner->Compute(inputs));
      Add(logits.subspan(vocab_size_), begin, bits);
    }
    QUIRE_RETURN_IF_ERROR(list_.LookAt(runner->cache(), /*at_rest=*/false));
    return CheckList::NoDifference(FirstDifference(want_, bits));
  }

  // Both write the page that they share.
  Status Forked() const {
    QUIRE_ASSIGN_OR_RETURN(const auto runner, NewRunner({}));
    Sequence own = runner->NewSequence();
    const auto length = static_cast<uint32_t>(tokens_.size());
    const uint32_t half = options_.page_size + options_.page_size / 2;
    std::vector<PositionBits> bits;
    QUIRE_RETURN_IF_ERROR(Extend(*runner, own, half, kCallLen, bits));
    Sequence fork = own.Fork(), other = own.Fork();
    QUIRE_RETURN_IF_ERROR(runner->Compute(other, std::span(mate_).subspan(half)).status());
    QUIRE_RETURN_IF_ERROR(Extend(*runner, fork, length, kCallLen, bits));
    QUIRE_RETURN_IF_ERROR(Extend(*runner, own, length, kCallLen, bits));
    return CheckList::NoDifference(FirstDifference(want_, bits));
  }

  Status CutBack() const {
    QUIRE_ASSIGN_OR_RETURN(const auto runner, NewRunner({}));
    Sequence own = runner->NewSequence();
    const auto length = static_cast<uint32_t>(tokens_.size());
    std::vector<PositionBits> bits;
    const uint32_t half = options_.page_size + options_.page_size / 2;
    QUIRE_RETURN_IF_ERROR(Extend(*runner, own, half, kCallLen, bits));
    QUIRE_RETURN_IF_ERROR(runner->Compute(own, std::span(mate_).subspan(half)).status());
    own.Truncate(half);
    QUIRE_RETURN_IF_ERROR(Extend(*runner, own, length, kCallLen, bits));
    return CheckList::NoDifference(FirstDifference(want_, bits));
  }

  const std::shared_ptr<const Model> model_;
  const EngineOptions options_;
  const uint32_t num_tokens_;
  const size_t vocab_size_;
  CheckList& list_;
  std::vector<TokenId> tokens_, mate_;
  std::vector<PositionBits> want_;  // [position]
};

double SecondsOf(ModelRunner& runner, std::span<const TokenId> tokens, uint32_t call_len) {
  Sequence sequence = runner.NewSequence();
  const auto start = std::chrono::steady_clock::now();
  for (size_t i = 0; i < tokens.size(); i += call_len)
    if (!runner.Compute(sequence, tokens.subspan(i, call_len)).ok()) break;
  return SecondsSince(start) / static_cast<double>(tokens.size());
}

}  // namespace

StatusOr<PurityLengths> ChooseLengths(const std::shared_ptr<const Model>& model,
                                      const EngineOptions& options, bool keeps_page_size,
                                      size_t num_codecs, double seconds) {
  QUIRE_ASSIGN_OR_RETURN(const auto runner, ModelRunner::Create(model, options));
  const uint32_t context_len = runner->options().context_len;
  const auto fits = [&](const PurityLengths& lengths) {
    return lengths.prompt_len() + lengths.answer_len <= context_len;
  };
  PurityLengths lengths{.page_size = options.page_size};
  if (!keeps_page_size) {
    const auto tokens = MakePrompt({{OwnPiece(0, std::min(32u, context_len / 2 * 2))}}, kSeed,
                                   static_cast<uint32_t>(model->shape().num_tokens));
    SecondsOf(*runner, tokens, 32);  // a first pass warms up
    const double in_chunks = SecondsOf(*runner, tokens, 32);
    const double one_by_one = SecondsOf(*runner, std::span(tokens).first(4), 1);
    for (const PurityLengths& tried : {PurityLengths{64, 12}, PurityLengths{32, 12},
                                       PurityLengths{16, 12}, PurityLengths{16, 5}}) {
      lengths = tried;
      // Of one codec: pages of prompts in chunks, pages token by token, steps of answers.
      const double needed = lengths.page_size * (130 * in_chunks + 3.5 * one_by_one) +
                            lengths.answer_len * (20 * one_by_one + 40 * in_chunks);
      if (fits(lengths) && needed * static_cast<double>(num_codecs) < seconds) break;
    }
  }
  if (!fits(lengths))
    return InvalidArgument(
        "the checks need {} tokens with pages of {}, the model's context has {}: lower "
        "--page-size",
        lengths.prompt_len() + lengths.answer_len, lengths.page_size, context_len);
  return lengths;
}

Status RunPurityChecks(const std::shared_ptr<const Model>& model, const EngineOptions& options,
                       const PurityLengths& lengths, CheckList& list) {
  EngineOptions all = options;
  all.page_size = lengths.page_size;
  all.fill_with_nan = true;  // what reads a page that nobody wrote shows
  KvShape shape;
  {
    QUIRE_ASSIGN_OR_RETURN(const auto runner, ModelRunner::Create(model, all));
    shape = runner->cache().shape();
  }
  const size_t one = LeastBytes(shape, lengths.prompt_len() + lengths.answer_len);
  all.kv_memory_bytes = 24 * one;
  const uint32_t looks_before = list.num_looks(), failed_before = list.num_failed_looks();
  PositionChecks(model, all, lengths, list).Run();
  AnswerChecks(model, all, lengths, one, list).Run();
  list.Run("accounting", [&](std::string& detail) -> Status {
    const uint32_t looks = list.num_looks() - looks_before;
    const uint32_t failed = list.num_failed_looks() - failed_before;
    if (failed > 0) return Internal("{} of {} looks found bytes without an owner", failed, looks);
    detail = fmt::format("{} looks: held + cached + free = budget; nothing held at the end", looks);
    return OkStatus();
  });
  return OkStatus();
}

}  // namespace quire
