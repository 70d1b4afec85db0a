#include "codec/kv_format.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "codec/code_units.h"

namespace quire {
namespace {

constexpr uint64_t kPartAlignment = 64;
constexpr uint64_t kHalfBytes = 2;

// Widest first. No entry of int8 without rotation: its bytes are those of int8.
constexpr std::array<KvFormat, 15> kFormats = {{
    {.name = "f32", .codec = KvCodec::kF32, .code_bits = 32, .is_for_latent = true},
    {.name = "f16",
     .codec = KvCodec::kF16,
     .code_bits = 16,
     .unit_bytes = 2,
     .is_for_latent = true},
    {.name = "bf16", .code_bits = 16, .is_for_latent = true},
    {.name = "fp8_e4m3", .code_bits = 8, .params = KvParams::kTokenByte, .is_for_latent = true},
    {.name = "fp8_e4m3:noscale", .code_bits = 8},
    {.name = "fp8_e5m2", .code_bits = 8},
    {.name = "int8", .code_bits = 8, .params = KvParams::kTokenScale, .is_for_latent = true},
    {.name = "int4", .code_bits = 4, .params = KvParams::kTokenGroups},
    {.name = "kivi4",
     .codec = KvCodec::kKivi4,
     .code_bits = 4,
     .params = KvParams::kChannels,
     .is_page_wise = true,
     .default_sink_pages = 1},
    {.name = "kivi2",
     .code_bits = 2,
     .params = KvParams::kChannels,
     .is_page_wise = true,
     .default_sink_pages = 1},
    {.name = "tile8",
     .code_bits = 8,
     .params = KvParams::kChannels,
     .is_page_wise = true,
     .is_for_latent = true},
    {.name = "tile6",
     .code_bits = 6,
     .params = KvParams::kChannels,
     .is_page_wise = true,
     .is_for_latent = true,
     .default_sink_pages = 1},
    {.name = "tile4",
     .code_bits = 4,
     .params = KvParams::kTile,
     .is_page_wise = true,
     .is_for_latent = true,
     .default_sink_pages = 1},
    {.name = "tile3",
     .code_bits = 3,
     .params = KvParams::kTile,
     .is_page_wise = true,
     .default_sink_pages = 1},
    {.name = "tile2",
     .code_bits = 2,
     .params = KvParams::kTile,
     .is_page_wise = true,
     .default_sink_pages = 1},
}};

uint64_t Aligned(uint64_t bytes) {
  return (bytes + kPartAlignment - 1) / kPartAlignment * kPartAlignment;
}

// The codes of `rows` vectors of `count` neighbours each: as many whole units as hold them, in one
// plane, or in two where the width is no power of two (3 = 2 + 1, 6 = 4 + 2).
uint64_t CodeBytes(const KvFormat& format, uint64_t rows, uint64_t count) {
  const auto plane = [&](uint32_t bits) {
    const uint64_t values_per_unit = format.unit_bytes * 8 / bits;
    return Aligned(rows * ((count + values_per_unit - 1) / values_per_unit) * format.unit_bytes);
  };
  if (format.code_bits == 3) return plane(2) + plane(1);
  if (format.code_bits == 6) return plane(4) + plane(2);
  return plane(format.code_bits);
}

// Params that have the same form on both sides, before rounding; `groups`: of 128 channels.
uint64_t TokenParamBytes(KvParams params, uint64_t page_size, uint64_t groups) {
  switch (params) {
    case KvParams::kNone:
      return 0;
    case KvParams::kTokenByte:
      return page_size;
    case KvParams::kTokenScale:
      return page_size * kHalfBytes;
    case KvParams::kTokenGroups:
    case KvParams::kChannels:
    case KvParams::kTile:
      return page_size * groups * 2 * kHalfBytes;
  }
  return 0;
}

uint64_t KParamBytes(KvParams params, uint64_t page_size, uint32_t head_dim) {
  if (params != KvParams::kChannels && params != KvParams::kTile)
    return TokenParamBytes(params, page_size, ChannelGroupsOf(head_dim));
  const uint64_t scales_of_tokens = params == KvParams::kTile ? page_size : 0;
  return (uint64_t{head_dim} * 2 + scales_of_tokens) * kHalfBytes;
}

}  // namespace

std::span<const KvFormat> KvFormats() { return kFormats; }

const KvFormat* FindKvFormat(std::string_view name) {
  for (const KvFormat& format : kFormats)
    if (format.name == name) return &format;
  return nullptr;
}

const KvFormat& KvFormatOf(KvCodec codec) {
  for (const KvFormat& format : kFormats)
    if (format.codec == codec) return format;
  QUIRE_CHECK(false);
  return kFormats.front();
}

const KvFormat& OpenFormat(const KvFormat& format) {
  return format.is_page_wise ? KvFormatOf(KvCodec::kF16) : format;
}

uint32_t DefaultSinkPages(const KvFormat& k, const KvFormat& v) {
  return std::max(k.default_sink_pages, v.default_sink_pages);
}

KvSideBytes KSideBytes(const KvFormat& format, uint32_t page_size, uint32_t head_dim) {
  return {.params = Aligned(KParamBytes(format.params, page_size, head_dim)),
          .codes = CodeBytes(format, page_size, head_dim)};
}

KvSideBytes VSideBytes(const KvFormat& format, uint32_t page_size, uint32_t head_dim) {
  return {.params = Aligned(TokenParamBytes(format.params, page_size, ChannelGroupsOf(head_dim))),
          .codes = CodeBytes(format, head_dim, page_size)};
}

uint64_t KvChunkBytes(const KvFormat& k, const KvFormat& v, uint32_t page_size, uint32_t head_dim_k,
                      uint32_t head_dim_v) {
  return KSideBytes(k, page_size, head_dim_k).total() +
         VSideBytes(v, page_size, head_dim_v).total();
}

uint64_t LatentChunkBytes(const KvFormat& format, uint32_t page_size, uint32_t rank,
                          uint32_t rope_dim) {
  QUIRE_CHECK(format.is_for_latent);
  KvSideBytes latent = KSideBytes(format, page_size, rank);
  if (format.params == KvParams::kTokenByte || format.params == KvParams::kTokenScale)
    latent.params = Aligned(TokenParamBytes(format.params, page_size, 1) * ChannelGroupsOf(rank));
  const KvFormat& key = format.code_bits == 32 ? format : KvFormatOf(KvCodec::kF16);
  return latent.total() + CodeBytes(key, page_size, rope_dim);
}

}  // namespace quire
