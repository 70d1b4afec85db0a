#include "engine/engine.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/errors.h"
#include "base/machine.h"
#include "base/memory.h"
#include "cache/page_pool.h"
#include "model/forward.h"
#include "model/gguf_file.h"
#include "model/layer_groups.h"

namespace quire {
namespace {

constexpr uint32_t kMaxChunk = 4096;
constexpr int kMaxThreads = 256;

// Decode steps allocate nothing up to here. A context beyond it may be a file's idle claim.
constexpr uint32_t kReservedTokens = 1 << 17;

// Half of what is free beside the weights: the pages are committed only as they are used.
uint64_t DefaultKvMemory(uint64_t weight_bytes) {
  constexpr uint64_t kLeast = uint64_t{256} << 20;
  const uint64_t available = AvailableMemoryBytes();
  return std::max(available > weight_bytes ? (available - weight_bytes) / 2 : 0, kLeast);
}

// Resolves the options that depend on the model, and the forms of each layer group's pages.
StatusOr<std::vector<KvForms>> PlanMemory(const GgufFile& file, EngineOptions& options) {
  StatusOr<ModelShape> read = ReadShape(file.header());
  if (!read.ok()) return read.status().WithContext(file.path());
  const ModelShape& shape = *read;
  const auto trained = static_cast<uint32_t>(shape.context_length);
  if (options.context_len == 0) options.context_len = trained;
  if (options.context_len > trained)
    spdlog::warn("a context of {} tokens is more than the {} that the model was trained for",
                 options.context_len, trained);
  if (options.kv_memory_bytes == 0) options.kv_memory_bytes = DefaultKvMemory(file.size_bytes());
  if (IsPageWise(options.kv_codec))
    return Unsupported("KV codec {}: pages are not sealed here yet; use f16 or f32",
                       KvCodecName(options.kv_codec));
  return MakeGroupForms(shape, LayerGroups(shape), options.page_size,
                        {.k_codec = options.kv_codec, .v_codec = options.kv_codec});
}

Status CheckOptions(const EngineOptions& options) {
  if (options.num_threads < 0 || options.num_threads > kMaxThreads)
    return InvalidArgument("{} threads: need 1 to {}", options.num_threads, kMaxThreads);
  if (options.chunk_len == 0 || options.chunk_len > kMaxChunk)
    return InvalidArgument("chunk of {} tokens: need 1 to {}", options.chunk_len, kMaxChunk);
  return OkStatus();
}

}  // namespace

void Sequence::Truncate(size_t length) {
  QUIRE_CHECK(length <= tokens_.size());
  tokens_.resize(length);
  pages_.Truncate(static_cast<uint32_t>(length));
}

struct Engine::Parts {
  explicit Parts(int num_threads) : team(num_threads, Workers::kSpared) {}

  ThreadTeam team;
  std::unique_ptr<PagePool> pool;
  std::unique_ptr<ForwardPass> forward;
  AnonymousMemory logits;
  std::vector<ForwardSequence> step;
  // A page of the pool holds the pages of all layer groups, one after another.
  std::vector<size_t> group_offsets;                 // in it, of each group
  std::vector<std::vector<std::byte*>> group_pages;  // [inputs][groups]
  std::vector<KvView> views;                         // of group_pages
};

Engine::Engine() = default;
Engine::~Engine() = default;

StatusOr<std::unique_ptr<Engine>> Engine::Load(
    const std::string& path, const EngineOptions& options,
    const std::function<void(uint64_t, uint64_t)>& progress) {
  QUIRE_RETURN_IF_ERROR(CheckOptions(options));
  std::unique_ptr<Engine> engine(new Engine());
  EngineOptions& resolved = engine->options_;
  resolved = options;
  if (resolved.num_threads == 0) resolved.num_threads = UsableCores();
  try {
    engine->parts_ = std::make_unique<Parts>(resolved.num_threads);
  } catch (const std::system_error& error) {
    return ResourceExhausted("the system refused one of {} threads: lower --threads",
                             resolved.num_threads);
  }
  Parts& parts = *engine->parts_;
  // From the header alone, so that wrong options are told before the weights are read.
  QUIRE_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::Open(path));
  QUIRE_ASSIGN_OR_RETURN(std::vector<KvForms> forms, PlanMemory(file, resolved));
  size_t page_bytes = 0;
  for (const KvForms& group : forms) {
    parts.group_offsets.push_back(page_bytes);
    page_bytes += group.open.layout.page_bytes();
  }
  QUIRE_ASSIGN_OR_RETURN(parts.pool, PagePool::Create({.page_bytes = page_bytes,
                                                       .budget_bytes = resolved.kv_memory_bytes}));
  QUIRE_ASSIGN_OR_RETURN(engine->model_, Model::Load(file, parts.team, progress));
  QUIRE_ASSIGN_OR_RETURN(parts.forward,
                         ForwardPass::Create(*engine->model_,
                                             {.kv = std::move(forms),
                                              .activations = resolved.activations,
                                              .instruction_set = resolved.instruction_set,
                                              .max_rows = resolved.chunk_len},
                                             resolved.num_threads));
  return engine;
}

Sequence Engine::NewSequence() {
  const uint32_t reserved = std::min(options_.context_len, kReservedTokens);
  Sequence sequence(PageTable(parts_->pool.get(), options_.page_size, reserved));
  sequence.tokens_.reserve(reserved);
  return sequence;
}

Status Engine::CheckInput(const SequenceInput& input) const {
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

StatusOr<std::span<const float>> Engine::Compute(Sequence& sequence,
                                                 std::span<const TokenId> tokens,
                                                 uint32_t num_logits,
                                                 const std::atomic<bool>* cancelled) {
  const SequenceInput input{&sequence, tokens, num_logits};
  return Compute({&input, 1}, cancelled);
}

StatusOr<std::span<const float>> Engine::Compute(std::span<const SequenceInput> inputs,
                                                 const std::atomic<bool>* cancelled) {
  size_t num_logits = 0;
  for (const SequenceInput& input : inputs) {
    QUIRE_RETURN_IF_ERROR(CheckInput(input));
    num_logits += std::min<size_t>(input.num_logits, input.tokens.size());
  }
  const size_t num_floats = num_logits * static_cast<size_t>(model_->shape().vocab_size);
  if (parts_->logits.size() < num_floats * sizeof(float)) {
    QUIRE_ASSIGN_OR_RETURN(parts_->logits, AnonymousMemory::Reserve(num_floats * sizeof(float)));
  }
  Status status = ReservePages(inputs);
  if (status.ok()) status = RunSteps(inputs, cancelled);
  if (!status.ok()) {  // each sequence as it was
    for (const SequenceInput& input : inputs)
      input.sequence->Truncate(input.sequence->tokens_.size());
    return status;
  }
  for (const SequenceInput& input : inputs)
    input.sequence->tokens_.insert(input.sequence->tokens_.end(), input.tokens.begin(),
                                   input.tokens.end());
  return std::span<const float>(parts_->logits.as<float>().first(num_floats));
}

Status Engine::ReservePages(std::span<const SequenceInput> inputs) {
  for (const SequenceInput& input : inputs) {
    const size_t length = input.sequence->tokens_.size() + input.tokens.size();
    QUIRE_RETURN_IF_ERROR(input.sequence->pages_.Reserve(static_cast<uint32_t>(length)));
  }
  return OkStatus();
}

void Engine::BuildViews(std::span<const SequenceInput> inputs) {
  const std::vector<size_t>& offsets = parts_->group_offsets;
  std::vector<std::vector<std::byte*>>& pages = parts_->group_pages;
  if (pages.size() < inputs.size() * offsets.size()) pages.resize(inputs.size() * offsets.size());
  parts_->views.clear();
  for (const SequenceInput& input : inputs) {
    const KvView all = input.sequence->pages_.view();
    for (const size_t offset : offsets) {
      std::vector<std::byte*>& own = pages[parts_->views.size()];
      own.clear();
      own.reserve(std::min(options_.context_len, kReservedTokens) / options_.page_size + 1);
      for (uint32_t i = 0; i < all.num_pages; ++i) own.push_back(all.pages[i] + offset);
      parts_->views.push_back({.pages = own.data(), .num_pages = all.num_pages});
    }
  }
}

// Sequence after sequence, each step filled up with as many rows as it may have.
Status Engine::RunSteps(std::span<const SequenceInput> inputs, const std::atomic<bool>* cancelled) {
  float* logits = parts_->logits.as<float>().data();
  std::vector<ForwardSequence>& step = parts_->step;
  step.clear();
  uint32_t num_rows = 0, num_logits = 0;
  const auto flush = [&]() -> Status {
    if (step.empty()) return OkStatus();
    if (cancelled != nullptr && cancelled->load(std::memory_order_relaxed))
      return Status(StatusCode::kCancelled, "cancelled");
    QUIRE_RETURN_IF_ERROR(parts_->forward->Run(parts_->team, step, logits));
    for (size_t i = 0; i < step.size(); ++i)
      if (const int layer = parts_->forward->bad_layer(i); layer >= 0)
        return NonFinite(
            "K or V of layer {} holds a NaN or infinity: the weights or the prompt are damaged, or "
            "the values are out of this model's range",
            layer);
    logits += size_t{num_logits} * static_cast<size_t>(model_->shape().vocab_size);
    step.clear();
    num_rows = num_logits = 0;
    return OkStatus();
  };
  BuildViews(inputs);
  const size_t num_groups = parts_->group_offsets.size();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const SequenceInput& input = inputs[i];
    const auto begin = static_cast<uint32_t>(input.sequence->tokens_.size());
    const auto num_tokens = static_cast<uint32_t>(input.tokens.size());
    const uint32_t wanted = std::min(input.num_logits, num_tokens);
    for (uint32_t done = 0; done < num_tokens;) {
      const uint32_t count = std::min(num_tokens - done, options_.chunk_len - num_rows);
      const uint32_t end = done + count;  // logits of [num_tokens - wanted, num_tokens)
      const uint32_t first_wanted = std::max(done, num_tokens - wanted);
      const uint32_t here = end > first_wanted ? end - first_wanted : 0;
      step.push_back({.tokens = input.tokens.subspan(done, count),
                      .first_position = begin + done,
                      .kv = std::span(parts_->views).subspan(i * num_groups, num_groups),
                      .num_logits = here});
      num_rows += count;
      num_logits += here;
      done = end;
      if (num_rows == options_.chunk_len) QUIRE_RETURN_IF_ERROR(flush());
    }
  }
  return flush();
}

uint64_t Engine::weight_bytes() const { return model_->weights().size_bytes(); }
uint64_t Engine::kv_held_bytes() const { return parts_->pool->held_bytes(); }
uint64_t Engine::kv_committed_bytes() const { return parts_->pool->committed_bytes(); }
uint64_t Engine::kv_budget_bytes() const { return parts_->pool->budget_bytes(); }
uint64_t Engine::num_kv_saturated() const { return parts_->forward->num_saturated(); }
uint64_t Engine::ReleaseIdleMemory() { return parts_->pool->ReleaseIdleMemory(); }

}  // namespace quire
