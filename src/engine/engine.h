// Engine: a loaded model, its KV pages and its threads: token ids in, logits out.
//
// One engine owns one model, one page pool and one thread team. Sequences take their pages from the
// pool and give them back when they die. Text is not known here (text/tokenizer.h), nor is how a
// next token is chosen (engine/sampler.h); engine/generation.h puts the three together.
//
// Pure: the logits of a position depend on the model, the activation form, the KV codec, the page
// size (softmax rescales once a page) and the tokens before it, and on nothing else: not on chunks,
// threads, instruction set or other sequences.
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
#include "cache/page_table.h"
#include "engine/options.h"
#include "model/model.h"

namespace quire {

// One token stream: its ids and the pages of those that are computed. Move-only; must die before
// its engine.
class Sequence {
 public:
  // The ids whose KV is in the pages, in order.
  std::span<const TokenId> tokens() const { return tokens_; }

  // Forgets all but the first `length` tokens, and gives whole pages back. The rest can be computed
  // anew, with the same bits. Requires: length <= tokens().size().
  void Truncate(size_t length);

 private:
  friend class Engine;
  explicit Sequence(PageTable pages) : pages_(std::move(pages)) {}

  PageTable pages_;
  std::vector<TokenId> tokens_;
};

// What one sequence gets computed in one call.
struct SequenceInput {
  Sequence* sequence = nullptr;     // stands in a call only once
  std::span<const TokenId> tokens;  // they follow sequence->tokens()
  uint32_t num_logits = 1;          // of the last so many of `tokens`
};

class Engine {
 public:
  // Reads the model at `path`. `progress(done_bytes, total_bytes)` may be empty.
  static StatusOr<std::unique_ptr<Engine>> Load(
      const std::string& path, const EngineOptions& options,
      const std::function<void(uint64_t, uint64_t)>& progress);
  ~Engine();

  const Model& model() const { return *model_; }
  const EngineOptions& options() const { return options_; }  // with every 0 resolved

  Sequence NewSequence();

  // Computes KV and logits of the given tokens, in chunks of options().chunk_len; several sequences
  // in one call share the steps. Returns [sum of num_logits][vocab_size] f32, in the order of
  // `inputs`; valid until the next call.
  //
  // `cancelled` (may be null) is looked at between chunks. Errors: kInvalidArgument (an id outside
  // the vocabulary, no tokens), kResourceExhausted (pages, the model's context),
  // kNonFinite (a NaN or infinity in K or V), kCancelled. A failed or cancelled call leaves each
  // sequence as it was.
  StatusOr<std::span<const float>> Compute(std::span<const SequenceInput> inputs,
                                           const std::atomic<bool>* cancelled = nullptr);
  // The same for one sequence.
  StatusOr<std::span<const float>> Compute(Sequence& sequence, std::span<const TokenId> tokens,
                                           uint32_t num_logits = 1,
                                           const std::atomic<bool>* cancelled = nullptr);

  // Memory, exact, in bytes.
  uint64_t weight_bytes() const;
  uint64_t kv_held_bytes() const;       // pages in use
  uint64_t kv_committed_bytes() const;  // what the pages take of the machine's memory
  uint64_t kv_budget_bytes() const;

  // Finite K and V values that did not fit the codec and were stored as its largest, since loading.
  uint64_t num_kv_saturated() const;

  // Gives memory behind free pages back to the system, in whole extents; returns the bytes.
  uint64_t ReleaseIdleMemory();

 private:
  struct Parts;  // pool, threads, forward pass, logits
  Engine();
  Status CheckInput(const SequenceInput& input) const;
  Status ReservePages(std::span<const SequenceInput> inputs);
  void BuildViews(std::span<const SequenceInput> inputs);
  Status RunSteps(std::span<const SequenceInput> inputs, const std::atomic<bool>* cancelled);

  EngineOptions options_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Parts> parts_;
};

}  // namespace quire
