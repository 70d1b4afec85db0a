// CodeUnits: where the 4-bit codes and the parameters of a sealed chunk lie (docs/formats.md).
//
// A unit is 4 bytes with the codes of 8 neighbours: channels of one token for K, tokens of one
// channel for V. Code e of a unit sits in byte e mod 4, from bit 4 (e / 4) on.
//
//   K codes   [P/16][ceil(head_dim_k/8)][16 tokens] units     K params  s[head_dim_k],
//   z[head_dim_k] V codes   [ceil(head_dim_v/16)][P/8][16 channels] units   V params  s[g][P],
//   z[g][P], g groups
//                                                                        of 128 channels
// The last block of V is narrower if head_dim_v mod 16 is not 0. Params are halves.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/kv_layout.h"

namespace quire {

inline constexpr uint32_t kCodesPerUnit = 8;
inline constexpr uint32_t kCodeUnitBytes = 4;
inline constexpr uint32_t kBitsPerCode = 4;
inline constexpr uint32_t kGroupChannels = 128;  // of V: the range of a token's neighbours

constexpr uint32_t UnitsOf(uint32_t count) {
  return count / kCodesPerUnit + (count % kCodesPerUnit != 0 ? 1 : 0);
}
constexpr uint32_t ChannelGroupsOf(uint32_t channels) {
  return channels / kGroupChannels + (channels % kGroupChannels != 0 ? 1 : 0);
}

// The bit from which on code e of a unit lies, seen as a little-endian 32-bit number.
constexpr uint32_t CodeShift(uint32_t e) { return e % 4 * 8 + e / 4 * 4; }

// The index of the unit that holds a value.
inline size_t KUnit(const KvLayout& layout, uint32_t token, uint32_t channel) {
  return (size_t{token / 16} * UnitsOf(layout.head_dim_k) + channel / kCodesPerUnit) * 16 +
         token % 16;
}
inline size_t VUnit(const KvLayout& layout, uint32_t token, uint32_t channel) {
  const uint32_t block = channel / 16, rest = layout.head_dim_v - block * 16;
  const uint32_t width = rest < 16 ? rest : 16;
  return size_t{block} * 16 * UnitsOf(layout.page_size) + size_t{token / kCodesPerUnit} * width +
         channel % 16;
}

}  // namespace quire
