#include "engine/model_runner.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/errors.h"
#include "base/machine.h"
#include "base/memory.h"
#include "cache/default_budget.h"
#include "codec/kv_forms.h"
#include "model/forward.h"
#include "model/gguf_file.h"
#include "model/layer_groups.h"

namespace quire {
namespace {

constexpr uint32_t kMaxTokenBudget = 4096;
constexpr uint32_t kMaxSeqs = 4096;
constexpr int kMaxThreads = 256;

// Decode steps allocate nothing up to here. A context beyond it may be a file's idle claim.
constexpr uint32_t kReservedTokens = 1 << 17;

// Changes with every rule that changes a bit: splits, polynomials, orders of sums.
constexpr int kArithmeticVersion = 1;

// Resolves the options that depend on the model, and the forms of each layer group's pages.
StatusOr<std::vector<KvForms>> PlanMemory(const ModelShape& shape, uint64_t unread_weight_bytes,
                                          EngineOptions& options, KvShape* kv_shape,
                                          std::string* budget_source) {
  const auto trained = static_cast<uint32_t>(shape.context_length);
  if (options.context_len == 0) options.context_len = trained;
  if (options.context_len > trained)
    spdlog::warn("a context of {} tokens is more than the {} that the model was trained for",
                 options.context_len, trained);
  if (options.kv_memory_bytes == 0) {
    const FreeMemory free = ReadFreeMemory();
    options.kv_memory_bytes = DefaultKvBudget(free.bytes, unread_weight_bytes);
    *budget_source = "default, from what is " + free.source;
  }
  const LayerGroups groups(shape);
  QUIRE_ASSIGN_OR_RETURN(std::vector<KvForms> forms,
                         MakeGroupForms(shape, groups, options.page_size,
                                        {.k_codec = options.kv_codec,
                                         .v_codec = options.kv_codec,
                                         .sink_pages = options.sink_pages,
                                         .recent_pages = options.recent_pages}));
  kv_shape->page_size = options.page_size;
  for (size_t g = 0; g < forms.size(); ++g)
    kv_shape->groups.push_back(GroupShapeOf(groups[g].window, forms[g]));
  return forms;
}

Status CheckOptions(const EngineOptions& options) {
  if (options.num_threads < 0 || options.num_threads > kMaxThreads)
    return InvalidArgument("{} threads: need 1 to {}", options.num_threads, kMaxThreads);
  if (options.token_budget == 0 || options.token_budget > kMaxTokenBudget)
    return InvalidArgument("a token budget of {}: need 1 to {}", options.token_budget,
                           kMaxTokenBudget);
  if (options.max_seqs == 0 || options.max_seqs > kMaxSeqs)
    return InvalidArgument("{} sequences at once: need 1 to {}", options.max_seqs, kMaxSeqs);
  return OkStatus();
}

std::string IdentityOf(const ModelShape& shape, const EngineOptions& options,
                       std::span<const KvForms> forms) {
  return fmt::format(
      "arithmetic {} | {} {} layers {} wide | {} activations | KV {} | page {} | "
      "sink {} | recent {}",
      kArithmeticVersion, shape.architecture, shape.num_layers, shape.embedding_length,
      options.activations == ActivationForm::kInt8 ? "int8" : "f32", KvCodecName(options.kv_codec),
      options.page_size, forms.front().rule.sink_pages, forms.front().rule.recent_pages);
}

}  // namespace

struct ModelRunner::Parts {
  explicit Parts(int num_threads) : team(num_threads, Workers::kSpared) {}

  ThreadTeam team;
  std::vector<KvForms> forms;  // until the forward pass takes them
  std::unique_ptr<ForwardPass> forward;
  AnonymousMemory logits;
  std::vector<ForwardSequence> step;
  // Of Compute: the chunk in progress.
  std::vector<StepRows> rows;
  std::vector<Sequence*> sequences;
};

ModelRunner::ModelRunner() = default;
ModelRunner::~ModelRunner() = default;

StatusOr<std::unique_ptr<ModelRunner>> ModelRunner::Load(
    const std::string& path, const EngineOptions& options,
    const std::function<void(uint64_t, uint64_t)>& progress) {
  std::unique_ptr<ModelRunner> runner(new ModelRunner());
  QUIRE_RETURN_IF_ERROR(runner->Start(options));
  // From the header alone, so that wrong options are told before the weights are read.
  QUIRE_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::Open(path));
  const StatusOr<ModelShape> shape = ReadShape(file.header());
  if (!shape.ok()) return shape.status().WithContext(file.path());
  QUIRE_RETURN_IF_ERROR(runner->MakeCache(*shape, file.size_bytes()));
  QUIRE_ASSIGN_OR_RETURN(auto model, Model::Load(file, runner->parts_->team, progress));
  QUIRE_RETURN_IF_ERROR(runner->MakeForward(std::move(model)));
  return runner;
}

StatusOr<std::unique_ptr<ModelRunner>> ModelRunner::Create(std::shared_ptr<const Model> model,
                                                           const EngineOptions& options) {
  std::unique_ptr<ModelRunner> runner(new ModelRunner());
  QUIRE_RETURN_IF_ERROR(runner->Start(options));
  QUIRE_RETURN_IF_ERROR(runner->MakeCache(model->shape(), 0));
  QUIRE_RETURN_IF_ERROR(runner->MakeForward(std::move(model)));
  return runner;
}

Status ModelRunner::Start(const EngineOptions& options) {
  QUIRE_RETURN_IF_ERROR(CheckOptions(options));
  options_ = options;
  if (options_.num_threads == 0) options_.num_threads = UsableCores();
  try {
    parts_ = std::make_unique<Parts>(options_.num_threads);
  } catch (const std::system_error& error) {
    return ResourceExhausted("the system refused one of {} threads: lower --threads",
                             options_.num_threads);
  }
  return OkStatus();
}

Status ModelRunner::MakeCache(const ModelShape& shape, uint64_t unread_weight_bytes) {
  KvShape kv_shape;
  QUIRE_ASSIGN_OR_RETURN(parts_->forms, PlanMemory(shape, unread_weight_bytes, options_, &kv_shape,
                                                   &kv_budget_source_));
  QUIRE_ASSIGN_OR_RETURN(cache_, KvCache::Create({.shape = std::move(kv_shape),
                                                  .budget_bytes = options_.kv_memory_bytes,
                                                  .policy = options_.eviction,
                                                  .keeps_prefixes = options_.keeps_prefixes,
                                                  .fill_with_nan = options_.fill_with_nan}));
  identity_ = IdentityOf(shape, options_, parts_->forms);
  return OkStatus();
}

Status ModelRunner::MakeForward(std::shared_ptr<const Model> model) {
  model_ = std::move(model);
  QUIRE_ASSIGN_OR_RETURN(parts_->forward,
                         ForwardPass::Create(*model_,
                                             {.kv = std::move(parts_->forms),
                                              .activations = options_.activations,
                                              .instruction_set = options_.instruction_set,
                                              .max_rows = max_rows(),
                                              .cascade = options_.cascade},
                                             options_.num_threads));
  return OkStatus();
}

uint32_t ModelRunner::max_rows() const {
  return std::max(options_.token_budget, options_.max_seqs);
}

uint32_t ModelRunner::reserved_tokens(uint32_t most_tokens) const {
  return std::min({most_tokens, options_.context_len, kReservedTokens});
}

Sequence ModelRunner::NewSequence() {
  const uint32_t reserved = reserved_tokens(UINT32_MAX);
  Sequence sequence(cache_->NewPrivateSequence(reserved));
  sequence.tokens_.reserve(reserved);
  return sequence;
}

Status ModelRunner::CheckInput(const SequenceInput& input) const {
  const ModelShape& shape = model_->shape();
  if (input.tokens.empty()) return InvalidArgument("no tokens to compute: give at least one");
  for (const TokenId token : input.tokens)
    if (token < 0 || token >= shape.vocab_size)
      return InvalidArgument("token id {} is outside the vocabulary: 0 to {}", token,
                             shape.vocab_size - 1);
  const size_t length = input.sequence->tokens().size() + input.tokens.size();
  if (length > options_.context_len)
    return ResourceExhausted("{} tokens do not fit the context of {}: shorten the prompt", length,
                             options_.context_len);
  return OkStatus();
}

StatusOr<std::span<const float>> ModelRunner::Compute(Sequence& sequence,
                                                      std::span<const TokenId> tokens,
                                                      uint32_t num_logits,
                                                      const std::atomic<bool>* cancelled) {
  const SequenceInput input{&sequence, tokens, num_logits};
  return Compute({&input, 1}, cancelled);
}

StatusOr<std::span<const float>> ModelRunner::Compute(std::span<const SequenceInput> inputs,
                                                      const std::atomic<bool>* cancelled) {
  size_t num_logits = 0;
  for (const SequenceInput& input : inputs) {
    QUIRE_RETURN_IF_ERROR(CheckInput(input));
    num_logits += std::min<size_t>(input.num_logits, input.tokens.size());
  }
  const size_t num_floats = num_logits * static_cast<size_t>(model_->shape().vocab_size);
  QUIRE_RETURN_IF_ERROR(GrowLogits(num_floats));
  for (const SequenceInput& input : inputs)
    input.sequence->tokens_.insert(input.sequence->tokens_.end(), input.tokens.begin(),
                                   input.tokens.end());
  const Status status = RunChunks(inputs, parts_->logits.as<float>().data(), cancelled);
  if (!status.ok()) {  // each sequence as it was
    for (const SequenceInput& input : inputs) {
      Sequence& sequence = *input.sequence;
      sequence.pages_.Cancel();
      const size_t before = sequence.tokens_.size() - input.tokens.size();
      sequence.tokens_.resize(sequence.pages_.length());
      if (before < sequence.tokens_.size()) sequence.Truncate(before);
    }
    return status;
  }
  return std::span<const float>(parts_->logits.as<float>().first(num_floats));
}

// Sequence after sequence, each step filled up with as many rows as it may have.
Status ModelRunner::RunChunks(std::span<const SequenceInput> inputs, float* logits,
                              const std::atomic<bool>* cancelled) {
  parts_->rows.clear();
  parts_->sequences.clear();
  uint32_t num_rows = 0, num_logits = 0;
  const auto flush = [&]() -> Status {
    if (num_rows == 0) return OkStatus();
    if (cancelled != nullptr && cancelled->load(std::memory_order_relaxed))
      return Status(StatusCode::kCancelled, "cancelled");
    QUIRE_RETURN_IF_ERROR(RunChunk(logits));
    logits += size_t{num_logits} * static_cast<size_t>(model_->shape().vocab_size);
    num_rows = num_logits = 0;
    return OkStatus();
  };
  for (const SequenceInput& input : inputs) {
    const SequencePages& pages = input.sequence->pages_;
    const auto total = static_cast<uint32_t>(input.sequence->tokens_.size());
    const auto num_tokens = static_cast<uint32_t>(input.tokens.size());
    const uint32_t first_wanted = total - std::min(input.num_logits, num_tokens);
    for (uint32_t begin = total - num_tokens; begin < total;) {
      const uint32_t end = std::min(total, begin + options_.token_budget - num_rows);
      const uint32_t here = end > first_wanted ? end - std::max(begin, first_wanted) : 0;
      QUIRE_RETURN_IF_ERROR(input.sequence->pages_.Reserve(end));
      parts_->rows.push_back(
          {.pages = &pages, .tokens = input.sequence->tokens_, .end = end, .num_logits = here});
      parts_->sequences.push_back(input.sequence);
      num_rows += end - begin;
      num_logits += here;
      begin = end;
      if (num_rows == options_.token_budget) QUIRE_RETURN_IF_ERROR(flush());
    }
  }
  return flush();
}

Status ModelRunner::RunChunk(float* logits) {
  QUIRE_RETURN_IF_ERROR(Run(parts_->rows, logits));
  for (size_t i = 0; i < parts_->rows.size(); ++i) QUIRE_RETURN_IF_ERROR(StatusOf(i));
  for (size_t i = 0; i < parts_->rows.size(); ++i)
    parts_->sequences[i]->pages_.Commit(parts_->rows[i].end, parts_->rows[i].tokens);
  parts_->rows.clear();
  parts_->sequences.clear();
  return OkStatus();
}

StatusOr<std::span<const float>> ModelRunner::RunStep(std::span<const StepRows> rows) {
  size_t num_logits = 0;
  for (const StepRows& r : rows) num_logits += r.num_logits;
  const size_t num_floats = num_logits * static_cast<size_t>(model_->shape().vocab_size);
  QUIRE_RETURN_IF_ERROR(GrowLogits(num_floats));
  QUIRE_RETURN_IF_ERROR(Run(rows, parts_->logits.as<float>().data()));
  return std::span<const float>(parts_->logits.as<float>().first(num_floats));
}

Status ModelRunner::Run(std::span<const StepRows> rows, float* logits) {
  std::vector<ForwardSequence>& step = parts_->step;
  step.clear();
  for (const StepRows& r : rows) {
    const uint32_t begin = r.pages->next_position();
    step.push_back({.tokens = r.tokens.subspan(begin, r.end - begin),
                    .first_position = begin,
                    .first_append = r.pages->length(),
                    .first_seal = r.pages->length() / options_.page_size,
                    .kv = r.pages->views(),
                    .num_logits = r.num_logits});
  }
  return parts_->forward->Run(parts_->team, step, logits);
}

Status ModelRunner::StatusOf(size_t rows) const {
  const int layer = parts_->forward->bad_layer(rows);
  if (layer < 0) return OkStatus();
  return NonFinite(
      "K or V of layer {} holds a NaN or infinity: the weights or the prompt are damaged, or the "
      "values are out of this model's range",
      layer);
}

Status ModelRunner::GrowLogits(size_t num_floats) {
  if (parts_->logits.size() >= num_floats * sizeof(float)) return OkStatus();
  QUIRE_ASSIGN_OR_RETURN(parts_->logits, AnonymousMemory::Reserve(num_floats * sizeof(float)));
  return OkStatus();
}

uint64_t ModelRunner::weight_bytes() const { return model_->weights().size_bytes(); }
uint64_t ModelRunner::num_kv_saturated() const { return parts_->forward->num_saturated(); }
uint64_t ModelRunner::num_chunks_read() const { return parts_->forward->num_chunks_read(); }

}  // namespace quire
