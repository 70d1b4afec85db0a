#include "plan/savings.h"

#include <fmt/format.h>

#include <algorithm>

#include "plan/capacity.h"
#include "plan/formula_bytes.h"

namespace quire {
namespace {

KvModel WithoutWindows(const KvModel& model) {
  KvModel full = model;
  for (KvLayers& layers : full.groups) layers.window = 0;
  return full;
}

// Bits of K's values and V's, without scales.
uint64_t CodedBytes(const KvModel& model, const KvChoice& choice, uint32_t tokens) {
  uint64_t bytes = 0;
  for (KvLayers layers : model.groups) {
    if (layers.is_latent()) {  // the shared key part stays in 16 bits, but in f32
      KvLayers rope = layers;
      rope.head_dim_k = 0;
      layers.latent_rope_dim = 0;
      bytes += FormulaBytes(layers, tokens, choice.k->code_bits) +
               FormulaBytes(rope, tokens, std::max(choice.k->code_bits, 16u));
      continue;
    }
    KvLayers k = layers, v = layers;
    k.head_dim_v = 0;
    v.head_dim_k = 0;
    bytes +=
        FormulaBytes(k, tokens, choice.k->code_bits) + FormulaBytes(v, tokens, choice.v->code_bits);
  }
  return bytes;
}

bool HasWindows(const KvModel& model) {
  return std::ranges::any_of(model.groups, [](const KvLayers& l) { return l.window > 0; });
}

std::string HeadsStep(const KvModel& model) {
  const KvLayers& layers = model.groups.front();
  if (layers.is_latent())
    return fmt::format("MLA: a latent of {} + {}", layers.head_dim_k, layers.latent_rope_dim);
  return fmt::format("{}: {} of {} heads", AttentionKind(model), layers.num_kv_heads,
                     model.num_q_heads);
}

}  // namespace

std::string_view AttentionKind(const KvModel& model) {
  const KvLayers& layers = model.groups.front();
  if (layers.is_latent()) return "MLA";
  if (model.num_q_heads == 0) return "heads";
  if (layers.num_kv_heads >= model.num_q_heads) return "MHA";
  return layers.num_kv_heads == 1 ? "MQA" : "GQA";
}

std::vector<SavingStep> SavingSteps(const KvModel& model, const KvChoice& choice, uint32_t tokens) {
  KvLayers naive;
  for (const KvLayers& layers : model.groups) naive.num_layers += layers.num_layers;
  naive.num_kv_heads = model.num_q_heads;
  naive.head_dim_k = model.q_head_dim;
  naive.head_dim_v = model.v_head_dim;
  std::vector<SavingStep> steps;
  if (model.num_q_heads > 0 && model.q_head_dim > 0)
    steps.push_back({"MHA, 16 bits", FormulaBytes(naive, tokens, 16)});
  const uint64_t heads = FormulaBytes(WithoutWindows(model), tokens, 16);
  if (AttentionKind(model) != "MHA") steps.push_back({HeadsStep(model), heads});
  if (HasWindows(model)) steps.push_back({"windows", FormulaBytes(model, tokens, 16)});
  if (choice.k->code_bits != 16 || choice.v->code_bits != 16)
    steps.push_back(
        {"codec " + choice.name() + ", without scales", CodedBytes(model, choice, tokens)});
  return steps;
}

PagingGain GainOfPages(const KvShape& shape, uint64_t budget_bytes, uint32_t reserved_tokens,
                       uint32_t used_tokens) {
  PagingGain gain = {.reserved_tokens = reserved_tokens, .used_tokens = used_tokens};
  KvShape whole = shape;
  for (KvGroupShape& group : whole.groups) group.window = 0;
  gain.reserved_bytes = ConversationUse(whole, reserved_tokens).counted_bytes;
  gain.contiguous_users = budget_bytes / gain.reserved_bytes;
  gain.paged_bytes = ConversationUse(shape, used_tokens).counted_bytes;
  gain.paged_users = UsersIn(shape, budget_bytes, used_tokens, 0);
  return gain;
}

}  // namespace quire
