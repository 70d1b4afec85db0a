// FormulaBytes: the KV bytes that the arithmetic of papers gives: values x bits, without pages,
// scales or alignment. Real bytes, of pages in a codec, are more.
//
// Threads: pure functions.
#pragma once

#include <cstdint>

#include "plan/kv_model.h"

namespace quire {

// Of one sequence of `tokens`; a layer with a window holds min(tokens, window) of them. Of each
// layer group, and of all.
// Requires: tokens below 2^31. Sums beyond 64 bits stay at the largest number.
uint64_t FormulaBytes(const KvLayers& layers, uint64_t tokens, uint32_t bits);
uint64_t FormulaBytes(const KvModel& model, uint64_t tokens, uint32_t bits);

// Cached values of a token in one layer: K and V of all KV heads, or the latent and its key part.
uint64_t ValuesPerToken(const KvLayers& layers);

}  // namespace quire
