#include "model/layer_shape.h"

#include <string>

#include "base/errors.h"

namespace quire {

StatusOr<LayerCounts> ReadLayerCounts(const ArchitectureKeys& keys) {
  LayerCounts counts;
  QUIRE_ASSIGN_OR_RETURN(counts.in_arrays, keys.Required("block_count", 1, kMaxLayers));
  QUIRE_ASSIGN_OR_RETURN(counts.predicting, keys.Optional("nextn_predict_layers", 0, kMaxLayers));
  if (counts.predicting >= counts.in_arrays)
    return InvalidFile("key {} is {}, but {} is {}: no layer is left",
                       keys.Name("nextn_predict_layers"), counts.predicting,
                       keys.Name("block_count"), counts.in_arrays);
  return counts;
}

StatusOr<HeadShape> ReadHeadShape(const ArchitectureKeys& keys, int embedding_length,
                                  const LayerCounts& layers) {
  const std::string heads = keys.Name("attention.head_count");
  HeadShape shape;
  QUIRE_ASSIGN_OR_RETURN(shape.num_q_heads,
                         keys.PerLayer("attention.head_count", kMaxHeads, layers.in_arrays));
  shape.num_kv_heads = shape.num_q_heads;
  if (keys.Find("attention.head_count_kv") != nullptr) {
    QUIRE_ASSIGN_OR_RETURN(shape.num_kv_heads,
                           keys.PerLayer("attention.head_count_kv", kMaxHeads, layers.in_arrays));
  }
  if (shape.num_q_heads % shape.num_kv_heads != 0)
    return InvalidFile("{} is {} and {} is {}: the first must be a multiple of the second", heads,
                       shape.num_q_heads, keys.Name("attention.head_count_kv"), shape.num_kv_heads);

  QUIRE_ASSIGN_OR_RETURN(shape.head_dim_k, keys.Optional("attention.key_length", 0, kMaxHeadDim));
  QUIRE_ASSIGN_OR_RETURN(shape.head_dim_v, keys.Optional("attention.value_length", 0, kMaxHeadDim));
  if (shape.head_dim_k == 0 || shape.head_dim_v == 0) {
    const int head_dim = embedding_length / shape.num_q_heads;
    if (embedding_length % shape.num_q_heads != 0 || head_dim > kMaxHeadDim)
      return InvalidFile(
          "{} is {} and {} is {}, which gives no head dimension up to {}: {} and {} are needed",
          keys.Name("embedding_length"), embedding_length, heads, shape.num_q_heads, kMaxHeadDim,
          keys.Name("attention.key_length"), keys.Name("attention.value_length"));
    if (shape.head_dim_k == 0) shape.head_dim_k = head_dim;
    if (shape.head_dim_v == 0) shape.head_dim_v = head_dim;
  }
  return shape;
}

}  // namespace quire
