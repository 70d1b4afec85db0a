// Sequence: a token stream that its owner computes by itself (ModelRunner::Compute): for tests,
// benchmarks and measurements. It shares no prefix with others. Requests of many users go through
// engine/engine.h.
//
// Move-only; must die before its runner. Threading: as the runner.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "cache/sequence_pages.h"

namespace quire {

class Sequence {
 public:
  // The ids whose KV is in the pages, in order.
  std::span<const TokenId> tokens() const { return tokens_; }

  // Forgets the tokens from `length` on, and those before that can't go on without them: to the
  // start of a page that is sealed, or all if a window has moved on. The rest can be computed anew,
  // with the same bits. Requires: length <= tokens().size().
  void Truncate(size_t length) { tokens_.resize(pages_.Truncate(static_cast<uint32_t>(length))); }

  // A second sequence with the same tokens and pages; a page is copied when one of them writes it.
  Sequence Fork() const {
    Sequence fork(pages_.Fork());
    fork.tokens_.reserve(tokens_.capacity());
    fork.tokens_ = tokens_;
    return fork;
  }

 private:
  friend class ModelRunner;
  explicit Sequence(SequencePages pages) : pages_(std::move(pages)) {}

  SequencePages pages_;
  std::vector<TokenId> tokens_;
};

}  // namespace quire
