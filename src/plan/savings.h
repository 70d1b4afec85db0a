// Savings: what the form of a model's attention and a codec save of KV memory against plain
// multi-head attention (MHA) in 16 bits over the whole context, and what pages save against a
// server that sets the whole context aside for each request.
//
// All by formula (plan/formula_bytes.h), so that the steps can be compared; pages of real codecs
// are in plan/kv_use.h.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cache/kv_shape.h"
#include "plan/kv_choice.h"
#include "plan/kv_model.h"

namespace quire {

// One conversation's KV after each step, each with all steps before it.
struct SavingStep {
  std::string name;  // "MHA, 16 bits", "GQA: 8 of 64 heads", "windows", "codec int8"
  uint64_t bytes = 0;
};

// The first is the naive formula, if the query heads are known; steps that the model does not take
// are not there.
std::vector<SavingStep> SavingSteps(const KvModel& model, const KvChoice& choice, uint32_t tokens);

// "MHA", "GQA", "MQA", "MLA"; "heads" if the number of query heads is not known.
std::string_view AttentionKind(const KvModel& model);

// Conversations of `used_tokens` at once in a budget, if each sets `reserved_tokens` aside, and in
// pages.
struct PagingGain {
  uint32_t reserved_tokens = 0, used_tokens = 0;
  uint64_t contiguous_users = 0, paged_users = 0;
  uint64_t reserved_bytes = 0;  // of one conversation, without windows: a buffer has them all
  uint64_t paged_bytes = 0;     // of one conversation
};
PagingGain GainOfPages(const KvShape& shape, uint64_t budget_bytes, uint32_t reserved_tokens,
                       uint32_t used_tokens);

}  // namespace quire
