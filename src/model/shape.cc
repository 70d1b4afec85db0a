#include "model/shape.h"

#include <algorithm>
#include <cmath>

#include "base/errors.h"
#include "base/message_text.h"
#include "model/architecture_keys.h"
#include "model/layer_shape.h"

namespace quire {
namespace {

constexpr int kMaxLength = 1 << 24;  // embedding, feed forward, vocabulary
constexpr int kMaxContext = 1 << 30;
constexpr double kMaxFactor = 1e6;

Status ReadLengths(const ArchitectureKeys& keys, ModelShape& shape, LayerCounts& layers) {
  QUIRE_ASSIGN_OR_RETURN(shape.context_length, keys.Required("context_length", 1, kMaxContext));
  QUIRE_ASSIGN_OR_RETURN(shape.embedding_length, keys.Required("embedding_length", 1, kMaxLength));
  QUIRE_ASSIGN_OR_RETURN(layers, ReadLayerCounts(keys));
  shape.num_layers = layers.num_layers();
  QUIRE_ASSIGN_OR_RETURN(shape.feed_forward_length,
                         keys.PerLayer("feed_forward_length", kMaxLength, layers.in_arrays));
  QUIRE_ASSIGN_OR_RETURN(shape.rms_epsilon,
                         keys.OptionalNumber("attention.layer_norm_rms_epsilon", 0, /*high=*/1));
  if (shape.rms_epsilon == 0)
    return InvalidFile("key {} is missing or 0", keys.Name("attention.layer_norm_rms_epsilon"));
  return OkStatus();
}

Status ReadHeads(const ArchitectureKeys& keys, ModelShape& shape, const LayerCounts& layers) {
  QUIRE_ASSIGN_OR_RETURN(const HeadShape heads,
                         ReadHeadShape(keys, shape.embedding_length, layers));
  shape.num_q_heads = heads.num_q_heads;
  shape.num_kv_heads = heads.num_kv_heads;
  shape.head_dim_k = heads.head_dim_k;
  shape.head_dim_v = heads.head_dim_v;
  shape.attention_scale = 1 / std::sqrt(shape.head_dim_k);
  return OkStatus();
}

Status ReadRopeScaling(const GgufHeader& header, const ArchitectureKeys& keys, RopeShape& rope) {
  const std::string type_key = keys.Name("rope.scaling.type");
  QUIRE_ASSIGN_OR_RETURN(const std::string_view type, header.GetStringOr(type_key, "linear"));
  QUIRE_ASSIGN_OR_RETURN(const double old_factor,
                         keys.OptionalNumber("rope.scale_linear", 1, kMaxFactor));
  QUIRE_ASSIGN_OR_RETURN(rope.factor,
                         keys.OptionalNumber("rope.scaling.factor", old_factor, kMaxFactor));
  if (type == "none") {
    rope.scaling = RopeScaling::kNone;
    rope.factor = 1;
  } else if (type == "linear") {
    rope.scaling = rope.factor == 1 ? RopeScaling::kNone : RopeScaling::kLinear;
  } else if (type == "yarn") {
    rope.scaling = RopeScaling::kYarn;
  } else {
    return Unsupported("key {} is {}: this version knows none, linear and yarn", type_key,
                       Printable(type));
  }
  return OkStatus();
}

Status ReadRope(const GgufHeader& header, const ArchitectureKeys& keys, ModelShape& shape) {
  RopeShape& rope = shape.ropes.emplace_back();
  QUIRE_ASSIGN_OR_RETURN(rope.dimension_count,
                         keys.Optional("rope.dimension_count", shape.head_dim_k, kMaxHeadDim));
  if (rope.dimension_count > shape.head_dim_k || rope.dimension_count % 2 != 0)
    return InvalidFile("{} is {}: need an even number, at most the head's {} values",
                       keys.Name("rope.dimension_count"), rope.dimension_count, shape.head_dim_k);
  QUIRE_ASSIGN_OR_RETURN(rope.freq_base, keys.FrequencyBase("rope.freq_base", 10000));
  QUIRE_RETURN_IF_ERROR(ReadRopeScaling(header, keys, rope));
  QUIRE_ASSIGN_OR_RETURN(
      rope.original_context_length,
      keys.Optional("rope.scaling.original_context_length", shape.context_length, kMaxContext));
  QUIRE_ASSIGN_OR_RETURN(rope.attn_factor,
                         keys.OptionalNumber("rope.scaling.attn_factor", 1, kMaxFactor));
  QUIRE_ASSIGN_OR_RETURN(rope.beta_fast,
                         keys.OptionalNumber("rope.scaling.yarn_beta_fast", 32, kMaxFactor));
  QUIRE_ASSIGN_OR_RETURN(rope.beta_slow,
                         keys.OptionalNumber("rope.scaling.yarn_beta_slow", 1, kMaxFactor));
  return OkStatus();
}

// The rows of token_embd say how many logits there are; the token list, or vocab_size where there
// is no tokenizer, says how many of them are tokens.
Status ReadVocabularySize(const GgufHeader& header, const ArchitectureKeys& keys,
                          ModelShape& shape) {
  const GgufTensor* embedding = header.FindTensor("token_embd.weight");
  if (embedding == nullptr) return InvalidFile("tensor token_embd.weight is missing");
  if (embedding->columns() != shape.embedding_length || embedding->rows() > kMaxLength)
    return InvalidFile("tensor token_embd.weight has dims {}: need [{}, 1 to {}]",
                       DimsText(*embedding), shape.embedding_length, kMaxLength);
  shape.vocab_size = static_cast<int>(embedding->rows());

  QUIRE_ASSIGN_OR_RETURN(const std::string_view tokenizer,
                         header.GetStringOr("tokenizer.ggml.model", "none"));
  QUIRE_ASSIGN_OR_RETURN(shape.num_tokens,
                         keys.Optional("vocab_size", shape.vocab_size, kMaxLength));
  const GgufKey* tokens = header.FindKey("tokenizer.ggml.tokens");
  std::string source = keys.Name("vocab_size");
  if (tokenizer != "none" && tokenizer != "no_vocab" && tokens != nullptr && tokens->is_array()) {
    source = "tokenizer.ggml.tokens";
    shape.num_tokens = static_cast<int>(std::min<uint64_t>(tokens->count, kMaxLength + 1));
  }
  if (shape.num_tokens < 1 || shape.num_tokens > shape.vocab_size)
    return InvalidFile("{} says {} tokens, but token_embd.weight has {} rows", source,
                       shape.num_tokens, shape.vocab_size);
  return OkStatus();
}

}  // namespace

std::string_view RopeScalingName(RopeScaling scaling) {
  switch (scaling) {
    case RopeScaling::kNone:
      return "none";
    case RopeScaling::kLinear:
      return "linear";
    case RopeScaling::kYarn:
      return "yarn";
  }
  return "?";
}

int ModelShape::num_windowed_layers() const {
  return static_cast<int>(std::count_if(layers.begin(), layers.end(),
                                        [](const LayerShape& layer) { return layer.window > 0; }));
}

StatusOr<ModelShape> ReadCommonShape(const GgufHeader& header, std::string_view architecture) {
  const ArchitectureKeys keys(header, architecture);
  ModelShape shape;
  shape.architecture = architecture;
  LayerCounts layers;
  QUIRE_RETURN_IF_ERROR(ReadLengths(keys, shape, layers));
  QUIRE_RETURN_IF_ERROR(ReadHeads(keys, shape, layers));
  QUIRE_RETURN_IF_ERROR(ReadRope(header, keys, shape));
  QUIRE_RETURN_IF_ERROR(ReadVocabularySize(header, keys, shape));
  shape.layers.resize(static_cast<size_t>(shape.num_layers));
  return shape;
}

}  // namespace quire
