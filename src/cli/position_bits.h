// What was computed for a position or an answer, in a form that is small enough to keep and tells
// two different bits apart.
//
// Threading: pure functions, plain values.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"

namespace quire {

// The logits of one position: a hash over all their bits, and a number for people.
struct PositionBits {
  uint32_t position = 0;
  uint64_t hash = 0;   // HashOfLogits()
  double logprob = 0;  // of the token that follows it; NaN if the logits hold a NaN
};
//   logits  [vocab_size]  f32, of which the first num_tokens are of tokens
PositionBits BitsOf(uint32_t position, std::span<const float> logits, uint32_t num_tokens,
                    TokenId next);

// Empty if all of `got` have the same bits as the entries of `want` for their positions; else the
// first difference in words. Requires: want[i].position == i; `got` lies within it.
std::string FirstDifference(std::span<const PositionBits> want, std::span<const PositionBits> got);

// A greedy answer; of each token its log-probability and HashOfLogits() of what it was sampled
// from.
struct AnswerBits {
  std::vector<TokenId> ids = {};
  std::vector<double> logprobs = {};
  std::vector<uint64_t> hashes = {};
};
// Also a different length is a difference.
std::string FirstDifference(const AnswerBits& want, const AnswerBits& got);

}  // namespace quire
