#include "codec/kv_codec.h"

#include "base/check.h"
#include "base/errors.h"
#include "codec/kv_format.h"

namespace quire {
namespace {

constexpr uint64_t kMaxPageBytes = uint64_t{1} << 31;

}  // namespace

std::string_view KvCodecName(KvCodec codec) {
  switch (codec) {
    case KvCodec::kF32:
      return "f32";
    case KvCodec::kF16:
      return "f16";
    case KvCodec::kKivi4:
      return "kivi4";
  }
  return "?";
}

StatusOr<KvCodec> ParseKvCodec(std::string_view name) {
  for (const KvCodec codec : {KvCodec::kF32, KvCodec::kF16, KvCodec::kKivi4})
    if (name == KvCodecName(codec)) return codec;
  return InvalidArgument("unknown KV codec '{}': use f16, f32 or kivi4", name);
}

bool IsPageWise(KvCodec codec) { return codec == KvCodec::kKivi4; }

KvCodec OpenForm(KvCodec codec) { return IsPageWise(codec) ? KvCodec::kF16 : codec; }

size_t KvElementBytes(KvCodec codec) {
  QUIRE_CHECK(!IsPageWise(codec));
  return codec == KvCodec::kF32 ? 4 : 2;
}

StatusOr<KvLayout> MakeKvLayout(const KvGeometry& geometry, KvCodec k, KvCodec v) {
  if (geometry.page_size == 0 || geometry.page_size % 16 != 0 || geometry.page_size > 4096)
    return InvalidArgument("page size {}: need a multiple of 16 from 16 to 4096",
                           geometry.page_size);
  if (geometry.num_layers == 0 || geometry.num_kv_heads == 0 || geometry.head_dim_k == 0 ||
      geometry.head_dim_v == 0)
    return InvalidArgument("KV geometry: {} layers, {} KV heads, head_dim {} and {}: need all > 0",
                           geometry.num_layers, geometry.num_kv_heads, geometry.head_dim_k,
                           geometry.head_dim_v);
  const KvSideBytes k_side = KSideBytes(KvFormatOf(k), geometry.page_size, geometry.head_dim_k);
  const KvSideBytes v_side = VSideBytes(KvFormatOf(v), geometry.page_size, geometry.head_dim_v);
  const uint64_t k_bytes = k_side.total(), v_bytes = v_side.total();
  if (k_bytes > kMaxPageBytes || v_bytes > kMaxPageBytes ||
      (k_bytes + v_bytes) > kMaxPageBytes / geometry.num_layers / geometry.num_kv_heads)
    return InvalidArgument("a page of {} tokens would be larger than 2 GiB: lower --page-size",
                           geometry.page_size);
  KvLayout layout;
  layout.page_size = geometry.page_size;
  layout.num_layers = geometry.num_layers;
  layout.num_kv_heads = geometry.num_kv_heads;
  layout.head_dim_k = geometry.head_dim_k;
  layout.head_dim_v = geometry.head_dim_v;
  layout.k_codes_offset = static_cast<uint32_t>(k_side.params);
  layout.v_params_offset = static_cast<uint32_t>(k_bytes);
  layout.v_codes_offset = static_cast<uint32_t>(k_bytes + v_side.params);
  layout.chunk_bytes = static_cast<uint32_t>(k_bytes + v_bytes);
  return layout;
}

}  // namespace quire
