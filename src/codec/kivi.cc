#include "codec/kivi.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "codec/affine_group.h"
#include "codec/code_units.h"

namespace quire {
namespace {

constexpr uint32_t kBits = 4;
constexpr uint32_t kMaxPageTokens = 4096;

// As HalfToFloat for finite halves, without a branch. An infinity or NaN gives an infinity.
float Widen(uint16_t half) {
  const uint32_t magnitude = static_cast<uint32_t>(half & 0x7FFFu) << 13;
  const float size = std::bit_cast<float>(magnitude) * 0x1p112f;
  const uint32_t beyond = (half & 0x7C00u) == 0x7C00u ? 0x7F800000u : 0u;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(size) | beyond |
                              static_cast<uint32_t>(half & 0x8000u) << 16);
}

const uint16_t* Halves(const std::byte* bytes) { return reinterpret_cast<const uint16_t*>(bytes); }
uint16_t* Halves(std::byte* bytes) { return reinterpret_cast<uint16_t*>(bytes); }

// The unit that holds a value, read as a little-endian number.
uint32_t CodeAt(const std::byte* codes, size_t unit, uint32_t e) {
  uint32_t bits;
  std::memcpy(&bits, codes + unit * kCodeUnitBytes, kCodeUnitBytes);
  return bits >> CodeShift(e) & 15;
}

// Channel by channel: 16 neighbouring tokens of it lie side by side in both forms.
bool SealK(const KvLayout& from, const KvLayout& to, const std::byte* open, std::byte* sealed) {
  const uint32_t page_size = from.page_size, head_dim = from.head_dim_k;
  const uint16_t* values = Halves(open + from.k_codes_offset);
  uint16_t* params = Halves(sealed);
  auto* units = reinterpret_cast<uint32_t*>(sealed + to.k_codes_offset);
  float x[kMaxPageTokens];
  uint8_t codes[kMaxPageTokens];
  bool is_finite = true;
  for (uint32_t channel = 0; channel < head_dim; ++channel) {
    for (uint32_t token = 0; token < page_size; token += 16) {
      const uint16_t* block = values + KElement(from, token, channel);
      for (uint32_t i = 0; i < 16; ++i) x[token + i] = Widen(block[i]);
    }
    const AffineGroup group = EncodeAffineGroup({x, page_size}, kBits, codes);
    is_finite = is_finite && group.is_finite;
    params[channel] = group.scale;
    params[head_dim + channel] = group.offset;
    const uint32_t shift = CodeShift(channel % kCodesPerUnit);
    for (uint32_t token = 0; token < page_size; token += 16) {
      uint32_t* row = units + KUnit(to, token, channel);
      for (uint32_t i = 0; i < 16; ++i) row[i] |= uint32_t{codes[token + i]} << shift;
    }
  }
  return is_finite;
}

// Token by token: 16 neighbouring channels of it lie side by side in both forms.
bool SealV(const KvLayout& from, const KvLayout& to, const std::byte* open, std::byte* sealed) {
  const uint32_t page_size = from.page_size, head_dim = from.head_dim_v;
  const uint32_t num_groups = ChannelGroupsOf(head_dim);
  const uint16_t* values = Halves(open + from.v_codes_offset);
  uint16_t* params = Halves(sealed + to.v_params_offset);
  auto* units = reinterpret_cast<uint32_t*>(sealed + to.v_codes_offset);
  float x[kGroupChannels];
  uint8_t codes[kGroupChannels];
  bool is_finite = true;
  for (uint32_t token = 0; token < page_size; ++token)
    for (uint32_t g = 0; g < num_groups; ++g) {
      const uint32_t first = g * kGroupChannels;
      const uint32_t num_channels = std::min(kGroupChannels, head_dim - first);
      for (uint32_t c = 0; c < num_channels; c += 16) {
        const uint16_t* block = values + VElement(from, token, first + c);
        const uint32_t width = std::min(16u, num_channels - c);
        for (uint32_t i = 0; i < width; ++i) x[c + i] = Widen(block[i]);
      }
      const AffineGroup group = EncodeAffineGroup({x, num_channels}, kBits, codes);
      is_finite = is_finite && group.is_finite;
      params[g * page_size + token] = group.scale;
      params[(num_groups + g) * page_size + token] = group.offset;
      const uint32_t shift = CodeShift(token % kCodesPerUnit);
      for (uint32_t c = 0; c < num_channels; c += 16) {
        uint32_t* row = units + VUnit(to, token, first + c);
        const uint32_t width = std::min(16u, num_channels - c);
        for (uint32_t i = 0; i < width; ++i) row[i] |= uint32_t{codes[c + i]} << shift;
      }
    }
  return is_finite;
}

}  // namespace

SealResult SealChunk(const KvForm& from, const KvForm& to, const std::byte* open,
                     std::byte* sealed) {
  static_assert(std::endian::native == std::endian::little, "units are little-endian");
  const size_t page_size = from.layout.page_size;
  QUIRE_CHECK(to.layout.chunk_bytes != 0 && page_size <= kMaxPageTokens);
  std::memset(sealed, 0, to.layout.chunk_bytes);  // padding, and units are made of several values
  bool is_finite = true;
  if (IsPageWise(to.k_codec))
    is_finite = SealK(from.layout, to.layout, open, sealed);
  else
    std::memcpy(sealed + to.layout.k_codes_offset, open + from.layout.k_codes_offset,
                KvElementBytes(from.k_codec) * page_size * from.layout.head_dim_k);
  if (IsPageWise(to.v_codec))
    is_finite = SealV(from.layout, to.layout, open, sealed) && is_finite;
  else
    std::memcpy(sealed + to.layout.v_codes_offset, open + from.layout.v_codes_offset,
                KvElementBytes(from.v_codec) * page_size * from.layout.head_dim_v);
  return is_finite ? SealResult::kFinite : SealResult::kNonFinite;
}

float SealedK(const KvLayout& sealed, const std::byte* chunk, uint32_t token, uint32_t channel) {
  const AffineGroup group = {.scale = Halves(chunk)[channel],
                             .offset = Halves(chunk)[sealed.head_dim_k + channel]};
  return group.Decode(CodeAt(chunk + sealed.k_codes_offset, KUnit(sealed, token, channel),
                             channel % kCodesPerUnit));
}

float SealedV(const KvLayout& sealed, const std::byte* chunk, uint32_t token, uint32_t channel) {
  const uint16_t* params = Halves(chunk + sealed.v_params_offset);
  const uint32_t num_groups = ChannelGroupsOf(sealed.head_dim_v);
  const uint32_t g = channel / kGroupChannels;
  const AffineGroup group = {.scale = params[size_t{g} * sealed.page_size + token],
                             .offset = params[(size_t{num_groups} + g) * sealed.page_size + token]};
  return group.Decode(
      CodeAt(chunk + sealed.v_codes_offset, VUnit(sealed, token, channel), token % kCodesPerUnit));
}

}  // namespace quire
