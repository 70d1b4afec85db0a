#include "model/arch/qwen3.h"

#include "model/arch/rules.h"

namespace quire {
namespace {

// head_dim comes from its key: it is not D / H in most of the family.
constexpr auto kTensors =
    JoinRules(OuterRules(/*output=*/Presence::kOptional, /*output_bias=*/Presence::kAbsent),
              PreNormRules(), HeadNormRules(),
              AttentionRules(/*qkv=*/{.scale = ScaleForm::kBeforeBias},
                             /*output=*/{.scale = ScaleForm::kBeforeBias}),
              GatedFeedForwardRules({.scale = ScaleForm::kAfterBias}));

}  // namespace

constinit const Architecture kQwen3 = {
    .name = "qwen3",
    .rope_pairs = RopePairs::kHalves,
    .norm_placement = NormPlacement::kPre,
    .head_norm = HeadNorm::kRms,
    .activation = Activation::kSiluGate,
    .tensors = kTensors,
    .read_own_keys = nullptr,
};

}  // namespace quire
