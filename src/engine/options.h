// EngineOptions: what a user may choose about an engine. The command line's table of options
// (cli/engine_flags.cc) has each with its flag, range and help.
#pragma once

#include <cstdint>

#include "base/instruction_set.h"
#include "codec/kv_codec.h"
#include "linear/activations.h"

namespace quire {

struct EngineOptions {
  int num_threads = 0;  // 0: the cores that this process may use
  InstructionSet instruction_set = AvailableInstructionSets().back();
  ActivationForm activations = ActivationForm::kInt8;  // part of the model's identity
  KvCodec kv_codec = KvCodec::kF16;
  uint64_t kv_memory_bytes = 0;  // budget of KV pages; 0: half of the memory that is free
  uint32_t page_size = 64;       // tokens, a multiple of 16
  uint32_t context_len = 0;      // most tokens of a sequence; 0: what the model was trained for
  uint32_t chunk_len = 512;      // most prompt tokens that one step computes
};

}  // namespace quire
