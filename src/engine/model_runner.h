// ModelRunner: a loaded model, its KV cache and its threads: token ids in, logits out.
//
// RunStep computes one step for sequences whose pages are reserved; the engine (engine.h) decides
// what is in it. Compute does the same for a Sequence of one's own, in chunks. Text is not known
// here (text/), nor is how a next token is chosen (sampler.h).
//
// Pure: the logits of a position depend on the model, the activation form, the KV codec, the page
// size (softmax rescales once a page), the sink and recent pages and the tokens before it, and on
// nothing else: not on chunks, threads, instruction set, other sequences or where pages came from.
//
// Threading: one thread at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "cache/kv_cache.h"
#include "engine/options.h"
#include "engine/sequence.h"
#include "model/model.h"

namespace quire {

// What one sequence gets computed in one call of Compute.
struct SequenceInput {
  Sequence* sequence = nullptr;     // stands in a call only once
  std::span<const TokenId> tokens;  // they follow sequence->tokens()
  uint32_t num_logits = 1;          // of the last so many of `tokens`
};

// The rows of one sequence in one step: positions [pages->next_position(), end).
struct StepRows {
  const SequencePages* pages = nullptr;  // reserved up to `end`
  std::span<const TokenId> tokens = {};  // of the sequence from its start, at least `end`
  uint32_t end = 0;
  uint32_t num_logits = 0;  // of the last so many rows
};

class ModelRunner {
 public:
  // Reads the model at `path`. `progress(done_bytes, total_bytes)` may be empty.
  static StatusOr<std::unique_ptr<ModelRunner>> Load(
      const std::string& path, const EngineOptions& options,
      const std::function<void(uint64_t, uint64_t)>& progress);
  // Another runner over a model that is loaded, with a cache and threads of its own.
  static StatusOr<std::unique_ptr<ModelRunner>> Create(std::shared_ptr<const Model> model,
                                                       const EngineOptions& options);
  ~ModelRunner();

  const Model& model() const { return *model_; }
  const std::shared_ptr<const Model>& shared_model() const { return model_; }
  const EngineOptions& options() const { return options_; }  // with every 0 resolved
  KvCache& cache() { return *cache_; }
  const KvCache& cache() const { return *cache_; }
  // Of the arithmetic: pages are shared only between equal ones.
  const std::string& identity() const { return identity_; }

  // Most rows of a step.
  uint32_t max_rows() const;
  // Tokens whose entries a sequence reserves, so that growing up to there allocates nothing.
  uint32_t reserved_tokens(uint32_t most_tokens) const;

  // One step. Returns [sum of num_logits][vocab_size] f32, in the order of `rows`; valid until the
  // next call. Errors: kResourceExhausted (work memory).
  StatusOr<std::span<const float>> RunStep(std::span<const StepRows> rows);
  // Of the last step: an error if K or V of these rows held a NaN or infinity. Their pages must
  // then be cancelled; other rows are fine.
  Status StatusOf(size_t rows) const;

  Sequence NewSequence();

  // Computes KV and logits of the given tokens, in chunks; several sequences in one call share the
  // steps. Returns [sum of num_logits][vocab_size] f32, in the order of `inputs`; valid until the
  // next call.
  //
  // `cancelled` (may be null) is looked at between chunks. Errors: kInvalidArgument (an id outside
  // the vocabulary, no tokens), kResourceExhausted (pages, the model's context),
  // kNonFinite (a NaN or infinity in K or V), kCancelled. A failed or cancelled call leaves each
  // sequence as it was, or as Truncate to there does.
  StatusOr<std::span<const float>> Compute(std::span<const SequenceInput> inputs,
                                           const std::atomic<bool>* cancelled = nullptr);
  // The same for one sequence.
  StatusOr<std::span<const float>> Compute(Sequence& sequence, std::span<const TokenId> tokens,
                                           uint32_t num_logits = 1,
                                           const std::atomic<bool>* cancelled = nullptr);

  // Memory, exact, in bytes.
  uint64_t weight_bytes() const;
  uint64_t kv_held_bytes() const { return cache_->pool().held_bytes(); }
  // What the pages take of the machine's memory.
  uint64_t kv_committed_bytes() const { return cache_->pool().committed_bytes(); }
  uint64_t kv_budget_bytes() const { return cache_->pool().budget_bytes(); }
  // Who set it: "as given", or what the default was made from.
  const std::string& kv_budget_source() const { return kv_budget_source_; }

  // Finite K and V values that did not fit the codec and were stored as its largest, since loading.
  uint64_t num_kv_saturated() const;
  // (page, KV head) chunks that attention has read since loading.
  uint64_t num_chunks_read() const;

  // Gives memory behind free pages back to the system, in whole extents; returns the bytes.
  uint64_t ReleaseIdleMemory() { return cache_->pool().ReleaseIdle(0, 0); }

 private:
  struct Parts;  // threads, forward pass, logits
  ModelRunner();
  // The steps of Load and Create, in this order: options and threads; the cache, for which the
  // shape is enough; what computes.
  Status Start(const EngineOptions& options);
  Status MakeCache(const ModelShape& shape, uint64_t unread_weight_bytes);
  Status MakeForward(std::shared_ptr<const Model> model);
  Status CheckInput(const SequenceInput& input) const;
  Status RunChunks(std::span<const SequenceInput> inputs, float* logits,
                   const std::atomic<bool>* cancelled);
  Status RunChunk(float* logits);
  Status Run(std::span<const StepRows> rows, float* logits);
  Status GrowLogits(size_t num_floats);

  EngineOptions options_;
  std::string identity_;
  std::string kv_budget_source_ = "as given";
  std::shared_ptr<const Model> model_;
  std::unique_ptr<KvCache> cache_;
  std::unique_ptr<Parts> parts_;
};

}  // namespace quire
