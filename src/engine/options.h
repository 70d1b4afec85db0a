// EngineOptions: what a user may choose about an engine. The command line's table of options
// (cli/engine_flags.cc) has each with its flag, range and help.
#pragma once

#include <cstdint>
#include <optional>

#include "base/instruction_set.h"
#include "cache/eviction_policy.h"
#include "codec/kv_codec.h"
#include "linear/activations.h"

namespace quire {

struct EngineOptions {
  int num_threads = 0;  // 0: the cores that this process may use
  InstructionSet instruction_set = AvailableInstructionSets().back();
  ActivationForm activations = ActivationForm::kInt8;  // part of the model's identity

  KvCodec kv_codec = KvCodec::kF16;
  std::optional<uint32_t> sink_pages = {};  // 0 or 1; unset: what the codec wants
  uint32_t recent_pages = 0;
  uint64_t kv_memory_bytes = 0;  // budget of KV pages; 0: half of the memory that is free
  uint32_t page_size = 64;       // tokens, a multiple of 16
  bool keeps_prefixes = true;    // share and keep the pages of prompts and answers
  EvictionPolicyKind eviction = kDefaultEvictionPolicy;
  bool cascade = true;         // read shared pages once for all their readers
  uint32_t kv_idle_s = 10;     // seconds until memory behind free pages goes back
  bool fill_with_nan = false;  // tests: PagePoolOptions
  // Tests: each choice ends with an error after so many tokens; 0: none does.
  uint32_t fail_after_tokens = 0;

  uint32_t context_len = 0;     // most tokens of a sequence; 0: what the model was trained for
  uint32_t token_budget = 512;  // most tokens of a step
  uint32_t target_itl_ms = 0;   // keep a step of decodes and chunks below it; 0: no such goal
  uint32_t max_seqs = 256;      // most sequences that have pages at once
  // Of the logits of prompts that want log-probabilities, in one step: their chunks are shorter for
  // it, since a row of logits is much larger than a row of anything else.
  uint64_t prompt_logits_bytes = uint64_t{32} << 20;
  // Most requests that wait for their first start, and tokens of their prompts; 0: no limit. If
  // nobody waits, one request may wait, however long it is.
  uint32_t max_queue = 0;
  uint64_t max_queue_tokens = 0;
};

}  // namespace quire
