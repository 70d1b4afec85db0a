// Where the bytes of a KV page lie: the one layout for all instruction sets and all tiers.
//
// A page holds P = page_size tokens of every layer of one layer group. For each (layer, KV head) it
// has one chunk, read from front to back:
//
//     [K params | K codes | V params | V codes]     each part starts at a multiple of 64 bytes
//
//   K codes  [P/16][ceil(head_dim_k/n)][16 tokens][n channels]     n values are a unit
//   V codes  [ceil(head_dim_v/16)][ceil(P/n)][16 channels][n tokens]
//
// The last V block may be narrower (head_dim_v mod 16 channels). For f32 and f16, n = 1 and there
// are no params. Token in the lane for K and channel in the lane for V: no horizontal sums, and
// both products share one micro-kernel. docs/formats.md has the whole definition.
//
// This struct is numbers only; codec/kv_codec.h makes it. It names no codec, no page table.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quire {

struct KvLayout {
  uint32_t page_size = 0;  // tokens, a multiple of 16
  uint32_t num_layers = 0;
  uint32_t num_kv_heads = 0;
  uint32_t head_dim_k = 0;
  uint32_t head_dim_v = 0;

  // Offsets in a chunk, in bytes; K params start at 0.
  uint32_t k_codes_offset = 0;
  uint32_t v_params_offset = 0;
  uint32_t v_codes_offset = 0;
  uint32_t chunk_bytes = 0;

  // Offset in a page of the chunk of (layer, head).
  size_t ChunkOffset(uint32_t layer, uint32_t head) const {
    return (static_cast<size_t>(layer) * num_kv_heads + head) * chunk_bytes;
  }
  size_t page_bytes() const { return static_cast<size_t>(num_layers) * num_kv_heads * chunk_bytes; }
};

// The element index (not bytes) of one value in K codes or V codes with n = 1 (f32, f16).
inline size_t KElement(const KvLayout& layout, uint32_t token, uint32_t channel) {
  return (static_cast<size_t>(token / 16) * layout.head_dim_k + channel) * 16 + token % 16;
}
inline size_t VElement(const KvLayout& layout, uint32_t token, uint32_t channel) {
  const uint32_t block = channel / 16;
  const uint32_t rest = layout.head_dim_v - block * 16;
  const uint32_t width = rest < 16 ? rest : 16;
  return static_cast<size_t>(block) * 16 * layout.page_size + static_cast<size_t>(token) * width +
         channel % 16;
}

}  // namespace quire
