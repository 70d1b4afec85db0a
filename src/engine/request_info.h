// RequestInfo: what a list of live requests tells of one.
//
// Threading: plain values.
#pragma once

#include <cstdint>
#include <string>

#include "engine/answer.h"

namespace quire {

struct RequestInfo {
  uint64_t id = 0;  // of its Answer
  std::string label = {}, tenant = {};
  AnswerPhase phase = AnswerPhase::kQueued;
  uint32_t num_choices = 1;
  uint32_t num_running = 0;  // its sequences that have pages; none: it waits, or was preempted
  uint32_t num_preemptions = 0;
  int32_t priority = 0;
  uint32_t prompt_len = 0;           // tokens
  uint32_t num_prompt_computed = 0;  // of them, cached ones included
  uint32_t num_cached = 0;
  uint64_t num_generated = 0;               // over all choices
  uint64_t held_pages = 0, held_bytes = 0;  // of all layer groups; those that others hold too count
  double seconds = 0;                       // since Submit
};

}  // namespace quire
