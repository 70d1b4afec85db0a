#include "codec/kv_codec.h"

#include "base/errors.h"

namespace quire {
namespace {

constexpr uint64_t kPartAlignment = 64;
constexpr uint64_t kMaxPageBytes = uint64_t{1} << 31;

uint64_t Aligned(uint64_t bytes) {
  return (bytes + kPartAlignment - 1) / kPartAlignment * kPartAlignment;
}

}  // namespace

std::string_view KvCodecName(KvCodec codec) { return codec == KvCodec::kF32 ? "f32" : "f16"; }

StatusOr<KvCodec> ParseKvCodec(std::string_view name) {
  if (name == "f32") return KvCodec::kF32;
  if (name == "f16") return KvCodec::kF16;
  return InvalidArgument("unknown KV codec '{}': use f16 or f32", name);
}

size_t KvElementBytes(KvCodec codec) { return codec == KvCodec::kF32 ? 4 : 2; }

StatusOr<KvLayout> MakeKvLayout(const KvGeometry& geometry, KvCodec k, KvCodec v) {
  if (geometry.page_size == 0 || geometry.page_size % 16 != 0 || geometry.page_size > 4096)
    return InvalidArgument("page size {}: need a multiple of 16 from 16 to 4096",
                           geometry.page_size);
  if (geometry.num_layers == 0 || geometry.num_kv_heads == 0 || geometry.head_dim_k == 0 ||
      geometry.head_dim_v == 0)
    return InvalidArgument("KV geometry: {} layers, {} KV heads, head_dim {} and {}: need all > 0",
                           geometry.num_layers, geometry.num_kv_heads, geometry.head_dim_k,
                           geometry.head_dim_v);
  const uint64_t k_bytes =
      Aligned(uint64_t{geometry.page_size} * geometry.head_dim_k * KvElementBytes(k));
  const uint64_t v_bytes =
      Aligned(uint64_t{geometry.page_size} * geometry.head_dim_v * KvElementBytes(v));
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
  layout.k_codes_offset = 0;
  layout.v_params_offset = static_cast<uint32_t>(k_bytes);
  layout.v_codes_offset = static_cast<uint32_t>(k_bytes);
  layout.chunk_bytes = static_cast<uint32_t>(k_bytes + v_bytes);
  return layout;
}

}  // namespace quire
