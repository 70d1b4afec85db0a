// Decodes tokens of a sealed chunk into f32 panels as the micro-kernels read them, for the
// instruction set that is being compiled: z + s * code. The product is exact (11 and 4 bits), so an
// FMA gives the bits of the reference (codec/kivi.h).
//
// Included by kernels.cc once for each target. Not here: std:: functions (base/vector-inl.h).
#if defined(QUIRE_ATTENTION_SEALED_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIRE_ATTENTION_SEALED_INL_H_
#undef QUIRE_ATTENTION_SEALED_INL_H_
#else
#define QUIRE_ATTENTION_SEALED_INL_H_
#endif

#include "attention/tile-inl.h"
#include "base/kv_layout.h"
#include "base/vector-inl.h"
#include "codec/code_units.h"

HWY_BEFORE_NAMESPACE();
namespace quire {
namespace HWY_NAMESPACE {

// A line of units: 16 channels or tokens with 8 codes each.
struct Units16 {
  VI v[kVecs];
};
HWY_INLINE Units16 LoadUnits16(const char* p) {
  Units16 units;
  for (size_t i = 0; i < kVecs; ++i)
    units.v[i] = hn::LoadU(DI(), reinterpret_cast<const int32_t*>(p) + i * kVecLanes);
  return units;
}

// offset + scale * code e of each unit.
template <uint32_t e>
HWY_INLINE F32x16 DecodeCode(const Units16& units, float scale, float offset) {
  const DF d;
  F32x16 x;
  for (size_t i = 0; i < kVecs; ++i) {
    const VI code =
        hn::And(hn::ShiftRight<CodeShift(e)>(units.v[i]), hn::Set(DI(), (1 << kBitsPerCode) - 1));
    x.v[i] = Fma(hn::Set(d, scale), hn::ConvertTo(d, code), hn::Set(d, offset));
  }
  return x;
}

// Codes e of n <= 8 of the units go to to[16 e]; code e has scale[e] and offset[e].
HWY_INLINE void DecodeLine(const Units16& units, const float* scale, const float* offset, size_t n,
                           float* to) {
  static_assert(kCodesPerUnit == 8);
  Store16(DecodeCode<0>(units, scale[0], offset[0]), to);
  if (n > 1) Store16(DecodeCode<1>(units, scale[1], offset[1]), to + 16);
  if (n > 2) Store16(DecodeCode<2>(units, scale[2], offset[2]), to + 32);
  if (n > 3) Store16(DecodeCode<3>(units, scale[3], offset[3]), to + 48);
  if (n > 4) Store16(DecodeCode<4>(units, scale[4], offset[4]), to + 64);
  if (n > 5) Store16(DecodeCode<5>(units, scale[5], offset[5]), to + 80);
  if (n > 6) Store16(DecodeCode<6>(units, scale[6], offset[6]), to + 96);
  if (n > 7) Store16(DecodeCode<7>(units, scale[7], offset[7]), to + 112);
}

HWY_INLINE void WidenHalves(const uint16_t* from, size_t n, float* to) {
  for (size_t i = 0; i < n; i += 16) Store16(LoadHalf16(from + i), to + i);
}

// K of tokens [token, token + num_tokens), both multiples of 16, to panels
// [num_tokens / 16][head_dim_k][16]. params [2 * head_dim_k rounded up to 16] is scratch.
HWY_NOINLINE void DecodeK(const KvLayout& layout, const char* chunk, size_t token,
                          size_t num_tokens, float* params, float* to) {
  const size_t head_dim = layout.head_dim_k, num_units = UnitsOf(layout.head_dim_k);
  const auto* halves = reinterpret_cast<const uint16_t*>(chunk);
  float* offsets = params + (head_dim + 15) / 16 * 16;
  WidenHalves(halves, head_dim, params);
  WidenHalves(halves + head_dim, head_dim, offsets);
  const char* line = chunk + layout.k_codes_offset + token / 16 * num_units * 64;
  for (size_t i = 0; i < num_tokens; i += 16)
    for (size_t c = 0; c < head_dim; c += kCodesPerUnit, line += 64) {
      const size_t n = head_dim - c < kCodesPerUnit ? head_dim - c : kCodesPerUnit;
      DecodeLine(LoadUnits16(line), params + c, offsets + c, n, to);
      to += 16 * n;
    }
}

// V alike, to panels [ceil(head_dim_v / 16)][num_tokens][16 channels]. The last panel's lanes
// beyond head_dim_v hold finite numbers of no meaning if the page's parameters are finite.
HWY_NOINLINE void DecodeV(const KvLayout& layout, const char* chunk, size_t token,
                          size_t num_tokens, float* params, float* to) {
  const size_t head_dim = layout.head_dim_v, page_size = layout.page_size;
  const size_t num_groups = ChannelGroupsOf(layout.head_dim_v);
  const auto* halves = reinterpret_cast<const uint16_t*>(chunk + layout.v_params_offset);
  float* offsets = params + num_groups * num_tokens;
  for (size_t g = 0; g < num_groups; ++g) {
    WidenHalves(halves + g * page_size + token, num_tokens, params + g * num_tokens);
    WidenHalves(halves + (num_groups + g) * page_size + token, num_tokens,
                offsets + g * num_tokens);
  }
  const size_t block_bytes = page_size / kCodesPerUnit * 16 * kCodeUnitBytes;
  for (size_t c = 0, block = layout.v_codes_offset; c < head_dim; c += 16, block += block_bytes) {
    const size_t width = head_dim - c < 16 ? head_dim - c : 16;
    const size_t line_bytes = width * kCodeUnitBytes;
    const char* line = chunk + block + token / kCodesPerUnit * line_bytes;
    const float* scale = params + c / kGroupChannels * num_tokens;
    const float* offset = offsets + c / kGroupChannels * num_tokens;
    for (size_t i = 0; i < num_tokens; i += kCodesPerUnit, line += line_bytes) {
      DecodeLine(LoadUnits16(line), scale + i, offset + i, kCodesPerUnit, to);
      to += 16 * kCodesPerUnit;
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace quire
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
