#include "plan/config_params.h"

#include <algorithm>
#include <vector>

#include "base/errors.h"

namespace quire {
namespace {

constexpr uint32_t kMaxWidth = 1 << 24;  // of a layer, a feed forward, a vocabulary
constexpr uint32_t kMaxExperts = 1 << 16;
constexpr uint64_t kMaxParams = uint64_t{1} << 62;

using Wide = unsigned __int128;  // layers x experts x width x width may pass 64 bits

class ParamCounter {
 public:
  ParamCounter(const ConfigFamily& family, const ConfigFields& fields, const KvModel& model)
      : family_(family), fields_(fields), model_(model) {}

  Status Count() {
    QUIRE_ASSIGN_OR_RETURN(width_, fields_.Required("hidden_size", kMaxWidth));
    QUIRE_RETURN_IF_ERROR(CountOuter());
    QUIRE_RETURN_IF_ERROR(CountAttention());
    QUIRE_RETURN_IF_ERROR(CountHeadNorms());
    QUIRE_RETURN_IF_ERROR(CountNorms());
    return CountFeedForward();
  }

  Wide total() const { return total_; }
  Wide active() const { return total_ - idle_; }
  // What could not be counted; empty: nothing.
  const std::string& missing() const { return missing_; }
  bool active_is_known() const { return active_is_known_; }

 private:
  void Add(Wide params) { total_ += params; }
  void AddToLayers(Wide params) { total_ += params * model_.num_layers; }
  // A matrix of the layer and its bias.
  static Wide Matrix(Wide columns, Wide rows, bool bias) {
    return columns * rows + (bias ? rows : 0);
  }
  Wide FeedForward(Wide ffn, bool bias) const {
    const Wide in = family_.has_gate ? 2 : 1;
    return in * Matrix(width_, ffn, bias) + Matrix(ffn, width_, bias);
  }
  StatusOr<bool> Flag(const ConfigFlag& flag) const {
    if (flag.field.empty()) return flag.fallback;
    return fields_.Bool(flag.field, flag.fallback);
  }
  // 0 if the file does not say: then nothing is counted at all.
  StatusOr<uint32_t> Need(std::string_view field, uint32_t high) {
    QUIRE_ASSIGN_OR_RETURN(const uint32_t value, fields_.Optional(field, 0, high));
    if (value == 0 && missing_.empty()) missing_ = fields_.NameOf(field);
    return value;
  }

  Status CountOuter() {
    QUIRE_ASSIGN_OR_RETURN(const uint32_t vocab,
                           fields_.Optional("vocab_size", family_.default_vocab, kMaxWidth));
    QUIRE_ASSIGN_OR_RETURN(const bool tied,
                           fields_.Bool("tie_word_embeddings", family_.default_tied));
    Add(Wide{vocab} * width_);
    if (!tied) Add(Matrix(width_, vocab, family_.has_logits_bias));
    if (family_.has_positions) Add(Wide{model_.context_length} * width_);
    return OkStatus();
  }

  Status CountAttention() {
    QUIRE_ASSIGN_OR_RETURN(const bool qkv_bias, Flag(family_.qkv_bias));
    QUIRE_ASSIGN_OR_RETURN(const bool output_bias, Flag(family_.output_bias));
    const Wide heads = model_.num_q_heads;
    AddToLayers(Matrix(heads * model_.v_head_dim, width_, output_bias));
    if (family_.has_sinks) AddToLayers(heads);
    if (family_.attention == ConfigAttention::kLatent) return CountLatent();
    const KvLayers& layer = model_.groups.front();
    AddToLayers(Matrix(width_, heads * model_.q_head_dim, qkv_bias) +
                Matrix(width_, Wide{layer.num_kv_heads} * layer.head_dim_k, qkv_bias) +
                Matrix(width_, Wide{layer.num_kv_heads} * layer.head_dim_v, qkv_bias));
    return OkStatus();
  }

  // Down to the latents, norms on them, up to the heads.
  Status CountLatent() {
    constexpr uint32_t kDefaultQRank = 1536;
    const KvLayers& layer = model_.groups.front();
    const Wide heads = model_.num_q_heads, rope = layer.latent_rope_dim, rank = layer.head_dim_k;
    const Wide q_rows = heads * model_.q_head_dim, nope = model_.q_head_dim - rope;
    QUIRE_ASSIGN_OR_RETURN(const bool bias, fields_.Bool("attention_bias", false));
    uint32_t q_rank = 0;
    if (!fields_.IsNull("q_lora_rank")) {
      QUIRE_ASSIGN_OR_RETURN(q_rank, fields_.Optional("q_lora_rank", kDefaultQRank, kMaxPlanDim));
    }
    if (q_rank == 0) {
      AddToLayers(Wide{width_} * q_rows);
    } else {
      AddToLayers(Matrix(width_, q_rank, bias) + q_rank + q_rank * q_rows);
    }
    AddToLayers(Matrix(width_, rank + rope, bias) + rank +
                rank * heads * (nope + model_.v_head_dim));
    return OkStatus();
  }

  Status CountHeadNorms() {
    QUIRE_ASSIGN_OR_RETURN(const bool is_used, Flag(family_.has_head_norm));
    if (!is_used) return OkStatus();
    const Wide head_dim = model_.q_head_dim;
    switch (family_.head_norm) {
      case ConfigHeadNorm::kNone:
        break;
      case ConfigHeadNorm::kOneHead:
        AddToLayers(2 * head_dim);
        break;
      case ConfigHeadNorm::kOneHeadAndBias:
        AddToLayers(4 * head_dim);
        break;
      case ConfigHeadNorm::kAllHeads:
        AddToLayers((Wide{model_.num_q_heads} + model_.groups.front().num_kv_heads) * head_dim);
        break;
    }
    return OkStatus();
  }

  Status CountNorms() {
    uint32_t vectors = family_.layer_norms;
    if (family_.attention == ConfigAttention::kFalcon) {
      // Attention and feed forward share a norm, but for the newer form and where they do not run
      // side by side.
      QUIRE_ASSIGN_OR_RETURN(const bool is_new, fields_.Bool("new_decoder_architecture", false));
      QUIRE_ASSIGN_OR_RETURN(const bool is_parallel, fields_.Bool("parallel_attn", true));
      QUIRE_ASSIGN_OR_RETURN(const uint32_t norms,
                             fields_.Optional("num_ln_in_parallel_attn", is_new ? 2 : 1, 2));
      if (!is_parallel || norms == 2) vectors *= 2;
    }
    AddToLayers(Wide{vectors} * width_);
    Add(Wide{family_.final_norms} * width_);
    return OkStatus();
  }

  Status CountFeedForward() {
    QUIRE_ASSIGN_OR_RETURN(const bool bias, Flag(family_.mlp_bias));
    uint32_t num_experts = 0;
    if (!family_.experts.count.empty() && !fields_.IsNull(family_.experts.count)) {
      QUIRE_ASSIGN_OR_RETURN(num_experts, Need(family_.experts.count, kMaxExperts));
    }
    uint32_t num_sparse = 0;
    if (num_experts > 0) {
      QUIRE_ASSIGN_OR_RETURN(num_sparse, NumSparseLayers());
      QUIRE_RETURN_IF_ERROR(CountExperts(num_experts, num_sparse));
    }
    const Wide num_dense = model_.num_layers - num_sparse;
    if (num_dense == 0) return OkStatus();
    uint32_t ffn = 0;
    // Older classes leave it out where it is four times the width.
    if (family_.has_gate) {
      QUIRE_ASSIGN_OR_RETURN(ffn, Need("intermediate_size", kMaxWidth));
    } else {
      QUIRE_ASSIGN_OR_RETURN(ffn, fields_.Optional("intermediate_size", 4 * width_, kMaxWidth));
    }
    Add(num_dense * FeedForward(ffn, bias));
    return OkStatus();
  }

  // Layers with experts: not the first ones of DeepSeek's kind, nor those that Qwen's fields leave
  // out.
  StatusOr<uint32_t> NumSparseLayers() {
    constexpr std::string_view kDense = "mlp_only_layers";
    QUIRE_ASSIGN_OR_RETURN(const uint32_t num_dense_first,
                           fields_.Optional("first_k_dense_replace", 0, kMaxPlanLayers));
    QUIRE_ASSIGN_OR_RETURN(const uint32_t step,
                           fields_.Optional("decoder_sparse_step", 1, kMaxPlanLayers));
    std::vector<bool> is_dense(model_.num_layers, false);
    if (const nlohmann::json* list = fields_.Find(kDense); list != nullptr && list->is_array()) {
      for (const nlohmann::json& layer : *list) {
        if (!layer.is_number_unsigned() || layer.get<uint64_t>() >= is_dense.size())
          return InvalidFile("field {} has {}: need indices of {} layers", kDense, ShownJson(layer),
                             is_dense.size());
        is_dense[layer.get<size_t>()] = true;
      }
    }
    uint32_t num_sparse = 0;
    for (uint32_t i = num_dense_first; i < is_dense.size(); ++i)
      num_sparse += !is_dense[i] && (i + 1) % step == 0 ? 1 : 0;
    return num_sparse;
  }

  Status CountExperts(uint32_t num_experts, uint32_t num_layers) {
    const ConfigExperts& experts = family_.experts;
    QUIRE_ASSIGN_OR_RETURN(const uint32_t ffn, Need(experts.width, kMaxWidth));
    QUIRE_ASSIGN_OR_RETURN(const uint32_t used,
                           fields_.Optional("num_experts_per_tok", 0, kMaxExperts));
    if (used > num_experts)
      return InvalidFile("field num_experts_per_tok is {} and {} is {}: need at most as many", used,
                         experts.count, num_experts);
    const Wide expert = FeedForward(ffn, experts.has_bias);
    Wide layer = Matrix(width_, num_experts, experts.has_bias) + num_experts * expert;
    if (experts.has_correction) layer += num_experts;
    if (!experts.shared_count.empty()) {
      QUIRE_ASSIGN_OR_RETURN(const uint32_t shared,
                             fields_.Optional(experts.shared_count, 0, kMaxExperts));
      layer += shared * expert;
    }
    if (!experts.shared_width.empty()) {
      QUIRE_ASSIGN_OR_RETURN(const uint32_t shared_ffn, Need(experts.shared_width, kMaxWidth));
      layer += FeedForward(shared_ffn, false) + width_;
    }
    Add(num_layers * layer);
    idle_ = num_layers * (num_experts - used) * expert;
    active_is_known_ = used > 0;
    return OkStatus();
  }

  const ConfigFamily& family_;
  const ConfigFields& fields_;
  const KvModel& model_;
  uint32_t width_ = 0;
  Wide total_ = 0;
  Wide idle_ = 0;  // experts that a token does not pass
  bool active_is_known_ = true;
  std::string missing_;
};

}  // namespace

Status CountParams(const ConfigFamily& family, const ConfigFields& fields, KvModel& model) {
  ParamCounter counter(family, fields, model);
  QUIRE_RETURN_IF_ERROR(counter.Count());
  if (!counter.missing().empty()) {
    model.notes.push_back(fmt::format("the number of parameters is not known: field {} is missing",
                                      counter.missing()));
    return OkStatus();
  }
  if (counter.total() > kMaxParams)
    return InvalidFile(
        "the fields give more than 4 x 10^18 parameters: one of hidden_size, "
        "vocab_size, intermediate_size or the numbers of experts is wrong");
  model.num_params = static_cast<uint64_t>(counter.total());
  if (counter.active_is_known()) model.num_active_params = static_cast<uint64_t>(counter.active());
  return OkStatus();
}

}  // namespace quire
