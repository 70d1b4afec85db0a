// Sampler: one row of logits becomes one token.
//
// The token is a pure function of (logits, params, state, choice, position): the random number is a
// counter-based one (Philox4x32-10) keyed by the seed, so neither batch mates nor preemption nor
// the history of this object matter, and n choices of one request differ.
//
// Order: allowed tokens, logit bias, min_tokens, penalties (engine/logit_adjustment.h);
// temperature; top_k; top_p, over what top_k left; min_p, relative to the likeliest token; then one
// draw, walking the kept tokens by rising id. Candidates rank by falling logit, equal ones by
// rising id, so the lowest id wins ties everywhere.
//
// Same tokens on every machine: the arithmetic is + - * / in double and an exp of our own (libm's
// differ in the last bit), and probabilities are summed as integers, which have no order.
//
// Not here: grammar masks (a masked token has the logit minus infinity), what ends an answer
// (SamplingParams::EndsAnswer, engine/stop_text.h).
//
// Threading: not thread-safe (it owns scratch); one Sampler serves all sequences of a thread.
// Cost: time linear in the vocabulary with any params, times log k for top_k. Nothing is
// allocated after construction except in errors.
// Papers: Holtzman et al., ICLR 2020 (top_p); Nguyen et al., ICLR 2025 (min_p); Salmon et al.,
// SC 2011 (Philox).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "engine/logprobs.h"
#include "engine/sampler_state.h"
#include "engine/sampling_params.h"

namespace quire {

struct SampledToken {
  TokenId id = 0;
  Logprobs logprobs = {};  // as params.top_logprobs says
};

class Sampler {
 public:
  // For logits rows whose first `num_tokens` entries are tokens; rows beyond are padding and never
  // sampled.
  explicit Sampler(uint32_t num_tokens);

  // Requires: params prepared for num_tokens (Validate() is enough for params without lists of
  // ids); `state` made with them.
  //   logits    [>= num_tokens]  f32; minus infinity is "never"
  //   position  of the token to be sampled, counted from the start of the sequence
  //   choice    which of the n answers to one prompt
  // kInvalidArgument for a row that is too short; kNonFinite for NaN, plus infinity, or a row that
  // is minus infinity wherever the params allow a token.
  StatusOr<SampledToken> Sample(std::span<const float> logits, const SamplingParams& params,
                                const SamplerState& state, uint64_t position, uint32_t choice = 0);

  uint32_t num_tokens() const { return num_tokens_; }

  // Of a token that is known, with the `num_top` likeliest. Errors: as Sample.
  StatusOr<Logprobs> Score(std::span<const float> logits, TokenId token, uint32_t num_top) const;

 private:
  struct Candidate {
    float logit;
    TokenId id;
    uint64_t weight;
  };
  // Candidates are in this order: the first is the best.
  static bool RanksBefore(const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
  }

  TokenId Draw(std::span<const float> logits, TokenId best, const SamplingParams& params,
               uint64_t random);
  // Fills kept_logits_ and kept_ids_ with the k best, by rising id.
  void KeepTopK(std::span<const float> logits, uint32_t k);
  // The last of the fewest tokens, best first, that weigh at least top_p of all. Its id is a place.
  Candidate LastOfTopP(std::span<const float> kept, std::span<const uint64_t> weights, float top_p);

  uint32_t num_tokens_;
  double weight_one_;  // the weight of the best token, a power of two
  std::vector<float> adjusted_;
  // exp((logit - best) / temperature) in fixed point; 0 is dropped. Integers, so that sums have no
  // order.
  std::vector<uint64_t> weights_;
  std::vector<float> kept_logits_;
  std::vector<TokenId> kept_ids_;
  std::vector<Candidate> rank_;  // scratch of the selections
};

}  // namespace quire
