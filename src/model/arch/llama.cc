#include "model/arch/llama.h"

#include "model/arch/rules.h"
#include "model/architecture_keys.h"

namespace quire {
namespace {

// Attention applies a quantiser's factor before the bias, the feed forward after it.
constexpr auto kTensors = JoinRules(
    OuterRules(/*output=*/Presence::kOptional, /*output_bias=*/Presence::kAbsent),
    // Llama 3.x keeps its rope scaling here, as divisors of the frequencies.
    std::array<TensorRule, 1>{
        {{.name = "rope_freqs", .columns = Dim::kHalfRope, .weight = Presence::kOptional}}},
    PreNormRules(),
    AttentionRules(/*qkv=*/{.scale = ScaleForm::kBeforeBias},
                   /*output=*/{.scale = ScaleForm::kBeforeBias}),
    GatedFeedForwardRules({.scale = ScaleForm::kAfterBias}));

// Mistral 7B bears this name. Its usual files say nothing of a window; where one does, it holds for
// every layer.
Status ReadOwnKeys(const ArchitectureKeys& keys, ModelShape& shape) {
  QUIRE_ASSIGN_OR_RETURN(shape.sliding_window,
                         keys.Optional("attention.sliding_window", 0, 1 << 30));
  for (LayerShape& layer : shape.layers) layer.window = shape.sliding_window;
  return keys.Refuse("expert_count", "mixtures of experts come in a later version");
}

}  // namespace

constinit const Architecture kLlama = {
    .name = "llama",
    .rope_pairs = RopePairs::kInterleaved,
    .norm_placement = NormPlacement::kPre,
    .head_norm = HeadNorm::kNone,
    .activation = Activation::kSiluGate,
    .tensors = kTensors,
    .read_own_keys = ReadOwnKeys,
};

}  // namespace quire
