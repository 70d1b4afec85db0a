// SamplingParams: what one request asks of its answer: how tokens are chosen, what ends it, which
// log-probabilities are told. Prepared once when the request comes; read-only afterwards, shared by
// all choices of the request.
//
// Not here: the ceiling of tokens and the priority (they belong to the request), what was generated
// so far (engine/sampler_state.h).
//
// Threading: plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/status.h"

namespace quire {

struct LogitBias {
  TokenId id = 0;
  float bias = 0;  // -100 to 100, added to the logit
};

// Defaults: those of `quire run`.
struct SamplingParams {
  static constexpr size_t kMaxLogitBiases = 1024;
  static constexpr size_t kMaxStopTokens = 1024;
  static constexpr size_t kMaxStopStrings = 16;
  static constexpr size_t kMaxStopStringBytes = 256;
  static constexpr int32_t kMaxTopLogprobs = 20;

  // The choice of a token; the order of the steps stands in engine/sampler.h.
  float temperature = 0.8f;  // 0 to 2; under 1e-5: the likeliest token
  int32_t top_k = 40;        // keep the k likeliest; 0 and -1: off
  float top_p = 0.95f;       // keep the likeliest that together reach it, 0 to 1; 0: only the best
  float min_p = 0.05f;       // keep those with at least min_p times the best's probability, 0 to 1
  // Over the generated tokens only, not the prompt's.
  float presence_penalty = 0;   // -2 to 2, taken from the logit of a token that was generated
  float frequency_penalty = 0;  // -2 to 2, taken once for each time
  float repetition_penalty =
      1;  // above 0; its positive logit is divided, a negative one multiplied
  uint64_t seed = 0;
  std::vector<LogitBias> logit_bias = {};    // at most 1024, an id once
  std::vector<TokenId> allowed_tokens = {};  // no others are sampled; empty: all are allowed

  // The end of the answer.
  uint32_t min_tokens = 0;  // no end-of-generation token, stop token or stop string before
  bool ignore_eos = false;  // end-of-generation tokens end nothing (stop tokens still do)
  std::vector<TokenId> stop_tokens = {};       // at most 1024
  std::vector<std::string> stop_strings = {};  // at most 16, each 1 to 256 bytes of UTF-8
  bool include_stop_string = false;            // leave the stop string in the text

  // Log-probabilities: nothing: none; k, 0 to 20: of the sampled token and of the k likeliest.
  // Costs one exp per vocabulary entry.
  std::optional<int32_t> top_logprobs = {};

  // The tokens that end the answer, ascending: set by Prepare.
  std::vector<TokenId> end_tokens = {};

  // Ranges that need no vocabulary. kInvalidArgument with the field, its value and its range.
  Status Validate() const;

  // Validates all, sorts the lists and sets end_tokens. To be called once, before sampling.
  //   num_tokens         ids are [0, num_tokens)
  //   end_of_generation  ids of the vocabulary that end an answer (Tokenizer::end_of_generation)
  // kInvalidArgument also for an id outside the vocabulary, and if min_tokens leaves no token to
  // choose.
  Status Prepare(uint32_t num_tokens, std::span<const TokenId> end_of_generation);

  // Requires: prepared.
  bool EndsAnswer(TokenId id) const;

  bool is_greedy() const { return temperature < 1e-5f; }
  bool has_penalties() const {
    return presence_penalty != 0 || frequency_penalty != 0 || repetition_penalty != 1;
  }
};

}  // namespace quire
