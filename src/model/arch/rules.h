// The parts that most architectures build their tables of tensors from.
//
// Each function gives the rules of one part of a model; JoinRules puts parts together. What a
// family has beside them it writes itself.
//
// Threads: constants.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

#include "model/architecture.h"

namespace quire {

// What a family's linear layers have beside their weights.
struct LinearForm {
  Presence bias = Presence::kOptional;
  ScaleForm scale = ScaleForm::kNone;
};

template <size_t... kSizes>
constexpr auto JoinRules(const std::array<TensorRule, kSizes>&... parts) {
  std::array<TensorRule, (kSizes + ...)> rules{};
  auto place = rules.begin();
  ((place = std::copy(parts.begin(), parts.end(), place)), ...);
  return rules;
}

// A vector of weights, one for each value of a row.
constexpr TensorRule NormRule(std::string_view name, Dim columns = Dim::kEmbedding) {
  return {.name = name, .columns = columns};
}

// token_embd, output_norm, and `output`: where a file has none, token_embd is the output matrix
// too.
constexpr std::array<TensorRule, 3> OuterRules(Presence output, Presence output_bias) {
  return {{{.name = "token_embd", .columns = Dim::kEmbedding, .rows = Dim::kVocabulary},
           {.name = "output",
            .columns = Dim::kEmbedding,
            .rows = Dim::kVocabulary,
            .weight = output,
            .bias = output_bias},
           NormRule("output_norm")}};
}

// The linear layers of attention: q, k and v, apart or as the rows of one matrix, and the output.
constexpr std::array<TensorRule, 5> AttentionRules(LinearForm qkv, LinearForm output) {
  const auto rule = [&](std::string_view name, Dim rows) {
    return TensorRule{.name = name,
                      .columns = Dim::kEmbedding,
                      .rows = rows,
                      .bias = qkv.bias,
                      .scale = qkv.scale,
                      .unless = "blk.N.attn_qkv"};
  };
  TensorRule fused = rule("blk.N.attn_qkv", Dim::kQkvRows);
  fused.weight = Presence::kOptional;
  fused.unless = {};
  return {{fused,
           rule("blk.N.attn_q", Dim::kQRows),
           rule("blk.N.attn_k", Dim::kKRows),
           rule("blk.N.attn_v", Dim::kVRows),
           {.name = "blk.N.attn_output",
            .columns = Dim::kAttentionColumns,
            .rows = Dim::kEmbedding,
            .bias = output.bias,
            .scale = output.scale}}};
}

// A feed forward with a gate.
constexpr std::array<TensorRule, 3> GatedFeedForwardRules(LinearForm form) {
  const auto rule = [&](std::string_view name, Dim columns, Dim rows) {
    return TensorRule{
        .name = name, .columns = columns, .rows = rows, .bias = form.bias, .scale = form.scale};
  };
  return {{rule("blk.N.ffn_gate", Dim::kEmbedding, Dim::kFeedForward),
           rule("blk.N.ffn_up", Dim::kEmbedding, Dim::kFeedForward),
           rule("blk.N.ffn_down", Dim::kFeedForward, Dim::kEmbedding)}};
}

// A norm of each head of q and of k, before rope (HeadNorm::kRms).
constexpr std::array<TensorRule, 2> HeadNormRules() {
  return {{NormRule("blk.N.attn_q_norm", Dim::kHeadDimK),
           NormRule("blk.N.attn_k_norm", Dim::kHeadDimK)}};
}

// The norms of a layer, by their placement.
constexpr std::array<TensorRule, 2> PreNormRules() {
  return {{NormRule("blk.N.attn_norm"), NormRule("blk.N.ffn_norm")}};
}
constexpr std::array<TensorRule, 4> SandwichNormRules() {
  return {{NormRule("blk.N.attn_norm"), NormRule("blk.N.post_attention_norm"),
           NormRule("blk.N.ffn_norm"), NormRule("blk.N.post_ffw_norm")}};
}

}  // namespace quire
