// KvFormat: every codec of the design, what it is called and how many bytes its chunks have, also
// those that the engine does not run yet: what a planner asks.
//
// A chunk is what one page holds of one layer and KV head:
//
//     [K params | K codes | V params | V codes]     each part, and each plane of codes, starts at a
//                                                   multiple of 64 bytes
//
// In latent attention (MLA) a chunk has one side, [latent codes | latent params | k_rope], whose
// params hold a scale for each 128 channels where other chunks have one for a head.
// MakeKvLayout (kv_codec.h) takes its sizes from here, so a plan and a pool cannot differ.
// docs/formats.md has the layout of those that run.
//
// Not here: encoding (kivi.h and the kernels), how pages round up (cache/page_pool.h).
//
// Threads: constants and pure functions. Sizes do not overflow: page_size <= 4096 is required.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "codec/kv_codec.h"

namespace quire {

// What stands beside the codes of one side.
enum class KvParams {
  kNone,
  kTokenByte,    // K and V: an exponent a token
  kTokenScale,   // K and V: a scale a token
  kTokenGroups,  // K and V: a scale and an offset for each 128 channels of a token
  kChannels,     // K: a scale and an offset a channel; V: as kTokenGroups
  kTile,         // as kChannels; K has a scale a token as well
};

struct KvFormat {
  std::string_view name;
  std::optional<KvCodec> codec = {};  // unset: the engine does not run it yet
  uint32_t code_bits = 0;             // of a value: 32, 16, 8, 6, 4, 3 or 2
  uint32_t unit_bytes = 4;            // of neighbouring values that are stored together
  KvParams params = KvParams::kNone;
  bool is_page_wise = false;        // sealed when a page is full; its open form is f16
  bool is_for_latent = false;       // allowed in latent attention
  uint32_t default_sink_pages = 0;  // 0 in window groups, whatever it says

  bool runs() const { return codec.has_value(); }
};

// Every codec, from the widest to the narrowest of each family.
std::span<const KvFormat> KvFormats();
// nullptr if there is none of that name.
const KvFormat* FindKvFormat(std::string_view name);
const KvFormat& KvFormatOf(KvCodec codec);
// The format in which tokens are written: f16 for page-wise ones, else the format itself.
const KvFormat& OpenFormat(const KvFormat& format);
// Of a cache with these two, in a group without a window.
uint32_t DefaultSinkPages(const KvFormat& k, const KvFormat& v);

// Of one side of a chunk, both in whole 64 bytes.
struct KvSideBytes {
  uint64_t params = 0;
  uint64_t codes = 0;

  uint64_t total() const { return params + codes; }
};

// A page-wise format: its sealed form. The open one is that of OpenFormat(format).
// Requires: page_size a multiple of 16, at most 4096.
KvSideBytes KSideBytes(const KvFormat& format, uint32_t page_size, uint32_t head_dim);
KvSideBytes VSideBytes(const KvFormat& format, uint32_t page_size, uint32_t head_dim);

uint64_t KvChunkBytes(const KvFormat& k, const KvFormat& v, uint32_t page_size, uint32_t head_dim_k,
                      uint32_t head_dim_v);
// Of latent attention: `rank` values of the latent and `rope_dim` of the key part that all heads
// share, which has 16 bits a value (32 with f32). Requires: is_for_latent.
uint64_t LatentChunkBytes(const KvFormat& format, uint32_t page_size, uint32_t rank,
                          uint32_t rope_dim);

}  // namespace quire
