// SamplerState: what the choice of a sequence's next token must know of the tokens before it: how
// many were generated, and, for penalties, how often each.
//
// One for each choice of a request, made when it comes. Tokens are counted when they are committed,
// so that sampling one again (a step that failed, a sequence that was preempted) gives the same.
//
// Threading: none of its own. Memory: without penalties none. With them two arrays of num_tokens
// counts; the system commits only the pages of them that hold a generated token. Nothing is
// allocated after construction.
#pragma once

#include <cstdint>
#include <span>

#include "base/ids.h"
#include "base/lazy_array.h"
#include "engine/sampling_params.h"

namespace quire {

class SamplerState {
 public:
  SamplerState() = default;  // for params without penalties
  // Ids are [0, num_tokens).
  SamplerState(const SamplingParams& params, uint32_t num_tokens);

  // `id` is part of the answer now. Requires: an id of the vocabulary.
  void Commit(TokenId id);

  uint32_t num_generated() const { return num_generated_; }

  bool counts_tokens() const { return counts_.size() > 0; }
  // Requires for these: counts_tokens().
  uint32_t count(TokenId id) const { return counts_[static_cast<size_t>(id)]; }
  // The ids that were generated at least once, in the order of their first time.
  std::span<const TokenId> distinct() const {
    return std::span<const TokenId>(distinct_).first(num_distinct_);
  }

 private:
  uint32_t num_generated_ = 0;
  uint32_t num_distinct_ = 0;
  LazyArray<uint32_t> counts_;   // [num_tokens]
  LazyArray<TokenId> distinct_;  // [num_tokens], num_distinct_ of them set
};

}  // namespace quire
