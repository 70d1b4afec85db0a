#include "engine/logprobs.h"

#include <algorithm>

#include "base/check.h"
#include "engine/exp_log.h"

namespace quire {
namespace {

// ln of the sum of exp(logit - best_logit).
double LogSum(std::span<const float> logits, double best_logit) {
  constexpr size_t kBlock = 64;  // exps in blocks, so that the compiler can use vectors
  double exps[kBlock];
  double sum = 0;  // by rising id, one order
  for (size_t begin = 0; begin < logits.size(); begin += kBlock) {
    const size_t block_len = std::min(kBlock, logits.size() - begin);
    for (size_t i = 0; i < block_len; ++i)
      exps[i] = ExpOfNegative(double{logits[begin + i]} - best_logit);
    for (size_t i = 0; i < block_len; ++i) sum += exps[i];
  }
  return LogOfAtLeastOne(sum);
}

// The ids of the `top.size()` largest, best first: insertion into a sorted list, rare after the
// first few hundred logits.
void SelectTop(std::span<const float> logits, std::span<TokenLogprob> top) {
  if (top.empty()) return;
  size_t num_kept = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (num_kept == top.size()) {
      if (logits[i] <= logits[top.back().id]) continue;  // of equal ones the lower id stays
      --num_kept;
    }
    size_t place = num_kept++;
    for (; place > 0 && logits[i] > logits[top[place - 1].id]; --place) top[place] = top[place - 1];
    top[place].id = static_cast<TokenId>(i);
  }
}

}  // namespace

void FillLogprobs(std::span<const float> logits, TokenId best, TokenId sampled, uint32_t num_top,
                  Logprobs& logprobs) {
  QUIRE_CHECK(num_top <= logprobs.top.size());
  const double best_logit = logits[best];
  const double log_sum = LogSum(logits, best_logit);
  const auto logprob = [&](TokenId id) { return (double{logits[id]} - best_logit) - log_sum; };
  logprobs.sampled = logprob(sampled);
  logprobs.num_top = static_cast<uint32_t>(std::min<size_t>(num_top, logits.size()));
  const std::span<TokenLogprob> top = std::span(logprobs.top).first(logprobs.num_top);
  SelectTop(logits, top);
  for (TokenLogprob& entry : top) entry.logprob = logprob(entry.id);
}

}  // namespace quire
