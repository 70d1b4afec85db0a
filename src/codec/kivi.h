// Kivi: the page-wise codec kivi4. K has a scale and an offset per channel, over the tokens of the
// page; V has them per token, over groups of 128 channels. Codes have 4 bits (affine_group.h).
//
// Where the codes lie is code_units.h. Not here: which pages are sealed, and when
// (model/kv_writer.h); the kernels that read them (attention/).
//
// Threads: pure functions, plain code: the same bytes everywhere.
// Paper: Liu et al., KIVI: A Tuning-Free Asymmetric 2bit Quantization for KV Cache, 2024.
//
// Invariants (kivi_test.cc):
//   [codec.kivi.1] The sealed bytes follow from the open bytes of the same chunk alone.
//   [codec.kivi.2] Every byte of the sealed chunk is written; padding is 0.
#pragma once

#include <cstddef>
#include <cstdint>

#include "codec/kv_forms.h"

namespace quire {

enum class SealResult {
  kFinite,
  kNonFinite,  // a group of a page-wise side holds a NaN or infinity and will decode to NaN
};

// Turns one chunk (of a layer and KV head) of a full page into its sealed form. A side that is
// final when written keeps its bytes.
//   open    [from.layout.chunk_bytes]  read; 64-byte aligned
//   sealed  [to.layout.chunk_bytes]    written; 64-byte aligned
// Requires: the two forms of one KvForms.
[[nodiscard]] SealResult SealChunk(const KvForm& from, const KvForm& to, const std::byte* open,
                                   std::byte* sealed);

// One value of a sealed chunk whose side is page-wise: z + s * code in f32, for tests and
// evaluation.
float SealedK(const KvLayout& sealed, const std::byte* chunk, uint32_t token, uint32_t channel);
float SealedV(const KvLayout& sealed, const std::byte* chunk, uint32_t token, uint32_t channel);

}  // namespace quire
