#include "plan/formula_bytes.h"

#include <algorithm>

namespace quire {
namespace {

uint64_t Saturated(unsigned __int128 bytes) {
  return static_cast<uint64_t>(std::min<unsigned __int128>(bytes, UINT64_MAX));
}

}  // namespace

uint64_t ValuesPerToken(const KvLayers& layers) {
  return uint64_t{layers.num_kv_heads} * (uint64_t{layers.head_dim_k} + layers.head_dim_v) +
         layers.latent_rope_dim;
}

uint64_t FormulaBytes(const KvLayers& layers, uint64_t tokens, uint32_t bits) {
  const uint64_t held = layers.window == 0 ? tokens : std::min<uint64_t>(tokens, layers.window);
  const auto values = static_cast<unsigned __int128>(held) * layers.num_layers;
  return Saturated(values * ValuesPerToken(layers) * bits / 8);
}

uint64_t FormulaBytes(const KvModel& model, uint64_t tokens, uint32_t bits) {
  unsigned __int128 bytes = 0;
  for (const KvLayers& layers : model.groups) bytes += FormulaBytes(layers, tokens, bits);
  return Saturated(bytes);
}

}  // namespace quire
