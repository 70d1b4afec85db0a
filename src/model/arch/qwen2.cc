#include "model/arch/qwen2.h"

#include "model/arch/rules.h"

namespace quire {
namespace {

// The factors that a quantiser may have left beside the feed forward are not applied.
constexpr auto kTensors = JoinRules(
    OuterRules(/*output=*/Presence::kOptional, /*output_bias=*/Presence::kOptional), PreNormRules(),
    AttentionRules(/*qkv=*/{.bias = Presence::kRequired, .scale = ScaleForm::kBeforeBias},
                   /*output=*/{.scale = ScaleForm::kBeforeBias}),
    GatedFeedForwardRules({.scale = ScaleForm::kIgnored}));

}  // namespace

constinit const Architecture kQwen2 = {
    .name = "qwen2",
    .rope_pairs = RopePairs::kHalves,
    .norm_placement = NormPlacement::kPre,
    .head_norm = HeadNorm::kNone,
    .activation = Activation::kSiluGate,
    .tensors = kTensors,
    .read_own_keys = nullptr,
};

}  // namespace quire
