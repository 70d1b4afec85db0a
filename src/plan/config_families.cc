#include "plan/config_families.h"

#include <array>

namespace quire {
namespace {

constexpr ConfigFlag kYes = {.fallback = true};
constexpr ConfigFlag kAttentionBias = {.field = "attention_bias"};
constexpr ConfigFlag kAttentionBiasOn = {.field = "attention_bias", .fallback = true};
constexpr ConfigFlag kMlpBias = {.field = "mlp_bias"};
constexpr ConfigFlag kBias = {.field = "bias"};
constexpr ConfigFlag kQkNorm = {.field = "use_qk_norm"};

constexpr ConfigFields::Alias kGpt2Names[] = {{"num_hidden_layers", "n_layer"},
                                              {"hidden_size", "n_embd"},
                                              {"num_attention_heads", "n_head"},
                                              {"max_position_embeddings", "n_positions"},
                                              {"intermediate_size", "n_inner"}};
constexpr ConfigFields::Alias kFalconNames[] = {{"num_key_value_heads", "num_kv_heads"},
                                                {"intermediate_size", "ffn_hidden_size"}};

constexpr ConfigExperts kDeepSeekExperts = {.count = "n_routed_experts",
                                            .width = "moe_intermediate_size",
                                            .shared_count = "n_shared_experts"};

constexpr ConfigFamily kCohere = {.model_type = "cohere",
                                  .default_q_heads = 64,
                                  .default_vocab = 256000,
                                  .default_context = 8192,
                                  .default_tied = true,
                                  .qkv_bias = kAttentionBias,
                                  .output_bias = kAttentionBias,
                                  .layer_norms = 1,
                                  .head_norm = ConfigHeadNorm::kAllHeads,
                                  .has_head_norm = kQkNorm};

constexpr ConfigFamily Cohere2() {
  ConfigFamily family = kCohere;
  family.model_type = "cohere2";
  family.window = ConfigWindow::kPattern;
  family.default_window = 4096;
  family.default_period = 4;
  family.has_layer_types = true;
  family.head_norm = ConfigHeadNorm::kNone;
  return family;
}

constexpr ConfigFamily kDeepSeekV2 = {.model_type = "deepseek_v2",
                                      .attention = ConfigAttention::kLatent,
                                      .default_q_heads = 32,
                                      .default_vocab = 32000,
                                      .default_context = 2048,
                                      .output_bias = kAttentionBias,
                                      .mlp_bias = kMlpBias,
                                      .experts = kDeepSeekExperts};

// Kimi K2 is DeepSeek V3 by another name.
constexpr ConfigFamily DeepSeekV3(std::string_view model_type) {
  ConfigFamily family = kDeepSeekV2;
  family.model_type = model_type;
  family.default_q_heads = 128;
  family.default_vocab = 129280;
  family.default_context = 4096;
  family.mlp_bias = {};
  family.experts.has_correction = true;
  return family;
}

constexpr ConfigFamily kFalcon = {.model_type = "falcon",
                                  .attention = ConfigAttention::kFalcon,
                                  .default_q_heads = 71,
                                  .default_vocab = 65024,
                                  .default_context = 2048,
                                  .default_tied = true,
                                  .qkv_bias = kBias,
                                  .output_bias = kBias,
                                  .mlp_bias = kBias,
                                  .has_gate = false,
                                  .layer_norms = 2,  // one with bias; config_params.cc has more
                                  .final_norms = 2,
                                  .aliases = kFalconNames};

constexpr ConfigFamily Gemma(std::string_view model_type, uint32_t q_heads, uint32_t kv_heads) {
  return {.model_type = model_type,
          .default_q_heads = q_heads,
          .default_kv_heads = kv_heads,
          .default_head_dim = 256,
          .default_vocab = 256000,
          .default_context = 8192,
          .default_tied = true,
          .qkv_bias = kAttentionBias,
          .output_bias = kAttentionBias};
}

constexpr ConfigFamily Gemma2() {
  ConfigFamily family = Gemma("gemma2", 8, 4);
  family.window = ConfigWindow::kPattern;
  family.default_window = 4096;
  family.default_period = 2;
  family.has_layer_types = true;
  family.layer_norms = 4;
  return family;
}

constexpr ConfigFamily Gemma3() {
  ConfigFamily family = Gemma2();
  family.model_type = "gemma3_text";
  family.runs = true;
  family.default_period = 6;
  family.default_vocab = 262208;
  family.default_context = 131072;
  family.head_norm = ConfigHeadNorm::kOneHead;
  return family;
}

constexpr ConfigFamily Glm(std::string_view model_type, uint32_t layer_norms) {
  return {.model_type = model_type,
          .default_q_heads = 32,
          .default_kv_heads = 2,
          .default_head_dim = 128,
          .default_vocab = 151552,
          .default_context = 131072,
          .qkv_bias = kAttentionBiasOn,
          .layer_norms = layer_norms};
}

constexpr ConfigFamily kGlm4Moe = {.model_type = "glm4_moe",
                                   .default_q_heads = 96,
                                   .default_kv_heads = 8,
                                   .default_vocab = 151552,
                                   .default_context = 131072,
                                   .qkv_bias = kAttentionBias,
                                   .head_norm = ConfigHeadNorm::kOneHead,
                                   .has_head_norm = kQkNorm,
                                   .experts = {.count = "n_routed_experts",
                                               .width = "moe_intermediate_size",
                                               .shared_count = "n_shared_experts",
                                               .has_correction = true}};

constexpr ConfigFamily kGpt2 = {.model_type = "gpt2",
                                .default_q_heads = 12,
                                .default_vocab = 50257,
                                .default_context = 1024,
                                .default_tied = true,
                                .qkv_bias = kYes,
                                .output_bias = kYes,
                                .mlp_bias = kYes,
                                .has_gate = false,
                                .layer_norms = 4,
                                .final_norms = 2,
                                .has_positions = true,
                                .aliases = kGpt2Names};

constexpr ConfigFamily kGptJ = {.model_type = "gptj",
                                .default_q_heads = 16,
                                .default_vocab = 50400,
                                .default_context = 2048,
                                .mlp_bias = kYes,
                                .has_gate = false,
                                .has_logits_bias = true,
                                .layer_norms = 2,
                                .final_norms = 2,
                                .aliases = kGpt2Names};

constexpr ConfigFamily kGptOss = {
    .model_type = "gpt_oss",
    .default_q_heads = 64,
    .default_kv_heads = 8,
    .default_head_dim = 64,
    .window = ConfigWindow::kPattern,
    .default_window = 128,
    .default_period = 2,
    .has_layer_types = true,
    .default_vocab = 201088,
    .default_context = 131072,
    .qkv_bias = kAttentionBiasOn,
    .output_bias = kAttentionBiasOn,
    .has_sinks = true,
    .experts = {.count = "num_local_experts", .width = "intermediate_size", .has_bias = true}};

constexpr ConfigFamily Llama(std::string_view model_type) {
  return {.model_type = model_type,
          .default_q_heads = 32,
          .default_vocab = 32000,
          .default_context = 2048,
          .qkv_bias = kAttentionBias,
          .output_bias = kAttentionBias,
          .mlp_bias = kMlpBias};
}

constexpr ConfigFamily RunningLlama() {
  ConfigFamily family = Llama("llama");
  family.runs = true;
  return family;
}

constexpr ConfigFamily Mistral(std::string_view model_type, ConfigWindow window) {
  return {.model_type = model_type,
          .default_q_heads = 32,
          .default_kv_heads = 8,
          .window = window,
          .default_window = 4096,
          .default_vocab = 32000,
          .default_context = 131072};
}

constexpr ConfigFamily RunningMistral() {
  ConfigFamily family = Mistral("mistral", ConfigWindow::kEveryLayer);
  family.runs = true;
  return family;
}

constexpr ConfigFamily Ministral() {
  ConfigFamily family = Mistral("ministral", ConfigWindow::kEveryLayer);
  family.has_layer_types = true;
  return family;
}

constexpr ConfigFamily Mixtral() {
  ConfigFamily family = Mistral("mixtral", ConfigWindow::kEveryLayer);
  family.default_window = 0;
  family.experts = {.count = "num_local_experts", .width = "intermediate_size"};
  return family;
}

constexpr ConfigFamily Olmo(std::string_view model_type) {
  return {.model_type = model_type,
          .default_q_heads = 32,
          .default_vocab = 50304,
          .default_context = 2048,
          .qkv_bias = kAttentionBias,
          .output_bias = kAttentionBias,
          .layer_norms = 0,
          .final_norms = 0};
}

constexpr ConfigFamily Olmo2(std::string_view model_type) {
  ConfigFamily family = Olmo(model_type);
  family.layer_norms = 2;
  family.final_norms = 1;
  family.head_norm = ConfigHeadNorm::kAllHeads;
  return family;
}

constexpr ConfigFamily Olmo3() {
  ConfigFamily family = Olmo2("olmo3");
  family.window = ConfigWindow::kPattern;
  family.default_window = 4096;
  family.default_period = 4;
  family.has_layer_types = true;
  return family;
}

constexpr ConfigFamily kPhi = {.model_type = "phi",
                               .default_q_heads = 32,
                               .default_vocab = 51200,
                               .default_context = 2048,
                               .qkv_bias = kYes,
                               .output_bias = kYes,
                               .mlp_bias = kYes,
                               .has_gate = false,
                               .has_logits_bias = true,
                               .layer_norms = 2,
                               .final_norms = 2,
                               .head_norm = ConfigHeadNorm::kOneHeadAndBias,
                               .has_head_norm = {.field = "qk_layernorm"}};

constexpr ConfigFamily kPhi3 = {.model_type = "phi3",
                                .default_q_heads = 32,
                                .window = ConfigWindow::kIgnored,
                                .default_vocab = 32064,
                                .default_context = 4096};

constexpr ConfigFamily Qwen2(std::string_view model_type, uint32_t q_heads) {
  return {.model_type = model_type,
          .default_q_heads = q_heads,
          .default_kv_heads = q_heads,
          .window = ConfigWindow::kUpper,
          .default_window = 4096,
          .has_layer_types = true,
          .default_vocab = 151936,
          .default_context = 32768,
          .qkv_bias = kYes};
}

constexpr ConfigFamily RunningQwen2() {
  ConfigFamily family = Qwen2("qwen2", 32);
  family.runs = true;
  return family;
}

constexpr ConfigFamily Qwen2Moe() {
  ConfigFamily family = Qwen2("qwen2_moe", 16);
  family.has_layer_types = false;
  family.qkv_bias = {.field = "qkv_bias", .fallback = true};
  family.experts = {.count = "num_experts",
                    .width = "moe_intermediate_size",
                    .shared_width = "shared_expert_intermediate_size"};
  return family;
}

constexpr ConfigFamily Qwen3() {
  ConfigFamily family = Qwen2("qwen3", 32);
  family.runs = true;
  family.default_head_dim = 128;
  family.qkv_bias = kAttentionBias;
  family.output_bias = kAttentionBias;
  family.head_norm = ConfigHeadNorm::kOneHead;
  return family;
}

constexpr ConfigFamily Qwen3Moe() {
  ConfigFamily family = Qwen3();
  family.model_type = "qwen3_moe";
  family.runs = false;
  family.default_kv_heads = 4;
  family.default_head_dim = 0;
  family.window = ConfigWindow::kIfUsed;
  family.has_layer_types = false;
  family.experts = {.count = "num_experts", .width = "moe_intermediate_size"};
  return family;
}

constexpr ConfigFamily SmolLm3() {
  ConfigFamily family = Llama("smollm3");
  family.default_q_heads = 16;
  family.default_kv_heads = 4;
  family.default_vocab = 128256;
  family.default_context = 32768;
  family.default_tied = true;
  family.has_layer_types = true;
  return family;
}

constexpr std::array kFamilies = {kCohere,
                                  Cohere2(),
                                  kDeepSeekV2,
                                  DeepSeekV3("deepseek_v3"),
                                  kFalcon,
                                  Gemma("gemma", 16, 16),
                                  Gemma2(),
                                  Gemma3(),
                                  Glm("glm", 2),
                                  Glm("glm4", 4),
                                  kGlm4Moe,
                                  kGpt2,
                                  kGptOss,
                                  kGptJ,
                                  Llama("granite"),
                                  DeepSeekV3("kimi_k2"),
                                  RunningLlama(),
                                  Ministral(),
                                  RunningMistral(),
                                  Mixtral(),
                                  Olmo("olmo"),
                                  Olmo2("olmo2"),
                                  Olmo3(),
                                  kPhi,
                                  kPhi3,
                                  RunningQwen2(),
                                  Qwen2Moe(),
                                  Qwen3(),
                                  Qwen3Moe(),
                                  SmolLm3()};

constexpr ConfigWrapper kWrappers[] = {
    {.model_type = "gemma3", .default_text_type = "gemma3_text", .runs = true},
    {.model_type = "mistral3", .default_text_type = "mistral"}};

}  // namespace

std::span<const ConfigFamily> ConfigFamilies() { return kFamilies; }

const ConfigFamily* FindConfigFamily(std::string_view model_type) {
  for (const ConfigFamily& family : kFamilies)
    if (family.model_type == model_type) return &family;
  return nullptr;
}

std::span<const ConfigWrapper> ConfigWrappers() { return kWrappers; }

}  // namespace quire
