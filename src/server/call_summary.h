// CallSummary: what one generation request came to: a line of the access log and the samples of the
// metrics. No text of prompts or answers.
//
// Threading: a plain value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cache/prefix_match.h"

namespace quire {

struct CallSummary {
  std::string request_id = {}, key_name = {}, tenant = {};
  std::string endpoint = {};  // the route's pattern
  int status = 200;           // 499: the client left
  std::string error_code = {};
  bool is_stream = false;
  std::vector<std::string> ignored_fields = {};  // as in x-quire-ignored

  // Zero if it was refused before it reached the engine.
  uint32_t num_prompts = 0, num_choices = 0;
  std::optional<uint32_t> max_tokens = {};
  uint64_t prompt_tokens = 0, cached_tokens = 0, generated_tokens = 0;
  uint64_t longest_answer = 0;  // tokens of the longest choice
  uint32_t num_preemptions = 0;
  MatchStop match_stop = MatchStop::kNamespace;        // of the first prompt
  std::vector<std::string> finish_reasons = {};        // one a choice: stop, length, abort, error
  const char* phase = "";                              // 499: queued, prefill or decode
  double read_seconds = 0;                             // from the whole body to Submit
  double queue_seconds = 0, first_token_seconds = -1;  // from Submit; -1: there was none
  double decode_seconds = 0;             // from the first to the last token of the slowest choice
  double total_seconds = 0;              // from the whole body to the end
  std::vector<float> token_gaps_s = {};  // between a choice's tokens
};

}  // namespace quire
