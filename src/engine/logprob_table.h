// LogprobTable: the log-probabilities of many tokens, k + 1 entries each, in memory that is
// committed only as it is written.
//
// Threading: one writer; a row may be read once its writer has told so by other means.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/check.h"
#include "base/lazy_array.h"
#include "engine/logprobs.h"

namespace quire {

class LogprobTable {
 public:
  LogprobTable() = default;
  LogprobTable(size_t num_rows, uint32_t num_top)
      : num_top_(num_top), ids_(num_rows * num_top), logprobs_(num_rows * (num_top + 1)) {}

  size_t num_rows() const { return logprobs_.size() / (num_top_ + 1); }
  uint32_t num_top() const { return num_top_; }
  size_t size_bytes() const {
    return ids_.size() * sizeof(TokenId) + logprobs_.size() * sizeof(double);
  }

  // Requires: i < num_rows(); as many of the top as the table has, or all of the vocabulary.
  void Set(size_t i, const Logprobs& row) {
    QUIRE_CHECK(i < num_rows() && row.num_top <= num_top_);
    double* logprobs = logprobs_.data() + i * (num_top_ + 1);
    *logprobs++ = row.sampled;
    for (uint32_t k = 0; k < num_top_; ++k) {
      const bool is_there = k < row.num_top;
      logprobs[k] = is_there ? row.top[k].logprob : 0;
      ids_[i * num_top_ + k] = is_there ? row.top[k].id : kNoToken;
    }
  }

  Logprobs Get(size_t i) const {
    QUIRE_CHECK(i < num_rows());
    Logprobs row;
    const size_t at = i * (num_top_ + 1);
    row.sampled = logprobs_[at];
    for (; row.num_top < num_top_ && ids_[i * num_top_ + row.num_top] != kNoToken; ++row.num_top)
      row.top[row.num_top] = {ids_[i * num_top_ + row.num_top], logprobs_[at + 1 + row.num_top]};
    return row;
  }

 private:
  static constexpr TokenId kNoToken = -1;  // the vocabulary is smaller than the top

  uint32_t num_top_ = 0;
  LazyArray<TokenId> ids_;
  LazyArray<double> logprobs_;
};

}  // namespace quire
