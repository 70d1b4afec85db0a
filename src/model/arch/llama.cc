#include "model/arch/llama.h"

#include "base/errors.h"

namespace quire {
namespace {

constexpr auto kOptional = Presence::kOptional;

// Attention applies a quantiser's factor before the bias, the feed forward after it.
constexpr TensorRule kTensors[] = {
    {.name = "token_embd", .columns = Dim::kEmbedding, .rows = Dim::kVocabulary},
    {.name = "output_norm", .columns = Dim::kEmbedding},
    // Absent: token_embd is the output matrix too.
    {.name = "output", .columns = Dim::kEmbedding, .rows = Dim::kVocabulary, .weight = kOptional},
    // Llama 3.x keeps its rope scaling here, as divisors of the frequencies.
    {.name = "rope_freqs", .columns = Dim::kHalfRope, .weight = kOptional},

    {.name = "blk.N.attn_norm", .columns = Dim::kEmbedding},
    {.name = "blk.N.attn_qkv",
     .columns = Dim::kEmbedding,
     .rows = Dim::kQkvRows,
     .weight = kOptional,
     .bias = kOptional,
     .scale = ScaleForm::kBeforeBias},
    {.name = "blk.N.attn_q",
     .columns = Dim::kEmbedding,
     .rows = Dim::kQRows,
     .bias = kOptional,
     .scale = ScaleForm::kBeforeBias,
     .unless = "blk.N.attn_qkv"},
    {.name = "blk.N.attn_k",
     .columns = Dim::kEmbedding,
     .rows = Dim::kKRows,
     .bias = kOptional,
     .scale = ScaleForm::kBeforeBias,
     .unless = "blk.N.attn_qkv"},
    {.name = "blk.N.attn_v",
     .columns = Dim::kEmbedding,
     .rows = Dim::kVRows,
     .bias = kOptional,
     .scale = ScaleForm::kBeforeBias,
     .unless = "blk.N.attn_qkv"},
    {.name = "blk.N.attn_output",
     .columns = Dim::kAttentionColumns,
     .rows = Dim::kEmbedding,
     .bias = kOptional,
     .scale = ScaleForm::kBeforeBias},

    {.name = "blk.N.ffn_norm", .columns = Dim::kEmbedding},
    {.name = "blk.N.ffn_gate",
     .columns = Dim::kEmbedding,
     .rows = Dim::kFeedForward,
     .bias = kOptional,
     .scale = ScaleForm::kAfterBias},
    {.name = "blk.N.ffn_up",
     .columns = Dim::kEmbedding,
     .rows = Dim::kFeedForward,
     .bias = kOptional,
     .scale = ScaleForm::kAfterBias},
    {.name = "blk.N.ffn_down",
     .columns = Dim::kFeedForward,
     .rows = Dim::kEmbedding,
     .bias = kOptional,
     .scale = ScaleForm::kAfterBias},
};

// Mistral 7B bears this name. Its usual files say nothing of a window; where one does, it holds for
// every layer.
Status ReadOwnKeys(const GgufHeader& header, ModelShape& shape) {
  QUIRE_ASSIGN_OR_RETURN(const int64_t window,
                         header.GetIntegerOr("llama.attention.sliding_window", 0, 0, 1 << 30));
  shape.sliding_window = static_cast<int>(window);
  QUIRE_ASSIGN_OR_RETURN(const int64_t experts,
                         header.GetIntegerOr("llama.expert_count", 0, 0, UINT32_MAX));
  if (experts > 0)
    return Unsupported("key llama.expert_count is {}: mixtures of experts come in a later version",
                       experts);
  return OkStatus();
}

}  // namespace

constinit const Architecture kLlama = {
    .name = "llama",
    .rope_pairing = RopePairing::kInterleaved,
    .norm_placement = NormPlacement::kPre,
    .activation = Activation::kSiluGate,
    .tensors = kTensors,
    .read_own_keys = ReadOwnKeys,
};

}  // namespace quire
