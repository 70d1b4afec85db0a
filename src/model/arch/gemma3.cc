#include "model/arch/gemma3.h"

#include <cmath>

#include "model/arch/rules.h"
#include "model/architecture_keys.h"

namespace quire {
namespace {

constexpr auto kTensors =
    JoinRules(OuterRules(/*output=*/Presence::kOptional, /*output_bias=*/Presence::kAbsent),
              SandwichNormRules(), HeadNormRules(),
              AttentionRules(/*qkv=*/{.scale = ScaleForm::kBeforeBias},
                             /*output=*/{.scale = ScaleForm::kBeforeBias}),
              GatedFeedForwardRules({.scale = ScaleForm::kIgnored}));

constexpr int kDefaultPeriod = 6;    // five layers with the window, one without
constexpr int kLayersOf27B = 62;     // the one size whose scores are scaled by D / H
constexpr int kMaxWindow = 1 << 30;  // as long as the longest context

// Layers with the window turn by a base of their own and are not stretched.
Status ReadWindow(const ArchitectureKeys& keys, ModelShape& shape) {
  QUIRE_ASSIGN_OR_RETURN(shape.sliding_window,
                         keys.Optional("attention.sliding_window", 0, kMaxWindow));
  QUIRE_ASSIGN_OR_RETURN(const std::vector<bool> windowed,
                         keys.WindowedLayers(kDefaultPeriod, shape.num_layers));
  RopeShape rope = shape.rope();
  QUIRE_ASSIGN_OR_RETURN(rope.freq_base, keys.FrequencyBase("rope.freq_base_swa", 10000));
  rope.scaling = RopeScaling::kNone;
  rope.factor = 1;
  if (shape.sliding_window == 0) return OkStatus();
  shape.ropes.push_back(rope);
  for (size_t i = 0; i < windowed.size(); ++i)
    if (windowed[i]) shape.layers[i] = {.window = shape.sliding_window, .rope = 1};
  return OkStatus();
}

Status ReadOwnKeys(const ArchitectureKeys& keys, ModelShape& shape) {
  shape.embedding_scale = std::sqrt(shape.embedding_length);
  if (shape.num_layers == kLayersOf27B)
    shape.attention_scale =
        1 / std::sqrt(static_cast<double>(shape.embedding_length) / shape.num_q_heads);
  for (const char* key : {"attn_logit_softcapping", "final_logit_softcapping"})
    QUIRE_RETURN_IF_ERROR(keys.Refuse(key, "soft caps come in a later version"));
  return ReadWindow(keys, shape);
}

}  // namespace

constinit const Architecture kGemma3 = {
    .name = "gemma3",
    .rope_pairs = RopePairs::kHalves,
    .norm_placement = NormPlacement::kSandwich,
    .head_norm = HeadNorm::kRms,
    .activation = Activation::kGeluGate,
    .tensors = kTensors,
    .read_own_keys = ReadOwnKeys,
};

}  // namespace quire
