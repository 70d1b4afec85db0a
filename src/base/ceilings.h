// Ceilings: what this machine can do at best, to measure kernels against in the same run: a plain
// streaming read, and loops of multiply-adds that touch registers only.
//
// For benchmarks. Threads: no state; run one on each core for the machine's ceiling.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/instruction_set.h"

namespace quire {

struct Ceilings {
  // Reads size_bytes (a multiple of 256) once, from front to back.
  void (*read)(const std::byte* p, size_t size_bytes);
  // Each does `rounds` rounds of that many multiply-adds: f32 FMA; u8 x s8 into s16 (4-bit
  // weights); s16 x s16 into s32 (8-bit weights).
  void (*fma)(int64_t rounds);
  void (*byte_products)(int64_t rounds);
  void (*word_products)(int64_t rounds);
  int64_t fma_per_round;
  int64_t byte_products_per_round;
  int64_t word_products_per_round;
};

// Requires: `set` is one of AvailableInstructionSets().
const Ceilings& GetCeilings(InstructionSet set);

}  // namespace quire
