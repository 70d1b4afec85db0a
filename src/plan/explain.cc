#include "plan/explain.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/message_text.h"
#include "plan/formula_bytes.h"

namespace quire {
namespace {

std::string Bytes(uint64_t bytes) { return GroupDigits(bytes) + " B"; }

void ExplainTokens(const Plan& plan, std::vector<Explanation>& lines) {
  std::string numbers;
  for (const KvLayers& layers : plan.request.model.groups) {
    const std::string values =
        layers.is_latent() ? fmt::format("({} + {})", layers.head_dim_k, layers.latent_rope_dim)
                           : fmt::format("{} x ({} + {})", layers.num_kv_heads, layers.head_dim_k,
                                         layers.head_dim_v);
    numbers +=
        fmt::format("{}{} x {} x 2", numbers.empty() ? "" : " + ", layers.num_layers, values);
  }
  lines.push_back({"KV bytes a token, 16 bits", "layers x KV heads x (head_dim of K + of V) x 2",
                   fmt::format("{} = {}", numbers, Bytes(plan.token_bytes))});
  numbers.clear();
  for (const KvLayers& layers : plan.request.model.groups) {
    const uint64_t held = layers.window == 0 ? plan.request.context_len
                                             : std::min(layers.window, plan.request.context_len);
    numbers += fmt::format("{}{} x {}", numbers.empty() ? "" : " + ", GroupDigits(held),
                           Bytes(FormulaBytes(layers, 1, 16)));
  }
  lines.push_back({"KV of one conversation, 16 bits",
                   "tokens x bytes a token; of a window group at most the window",
                   fmt::format("{} = {}", numbers, Bytes(plan.formula_bytes))});
}

void ExplainPages(const Plan& plan, std::vector<Explanation>& lines) {
  for (size_t g = 0; g < plan.shape.groups.size(); ++g) {
    const KvGroupShape& shape = plan.shape.groups[g];
    const GroupUse& use = plan.conversation.groups[g];
    std::string numbers = fmt::format("{} x {}", GroupDigits(use.pages.open),
                                      Bytes(PageStride(shape.open_page_bytes)));
    if (shape.has_sealed())
      numbers += fmt::format(" + {} sealed x {}", GroupDigits(use.pages.sealed),
                             Bytes(PageStride(shape.sealed_page_bytes)));
    lines.push_back(
        {fmt::format("pages of one conversation, {}", GroupLabel(plan.request.model.groups[g])),
         "pages at its largest step x page bytes rounded up to 4 KiB",
         fmt::format("{} = {}", numbers, Bytes(use.counted_bytes))});
  }
  lines.push_back(
      {"pages of all users", "shared prefix + users x own pages",
       fmt::format("{} + {} x {} = {}", Bytes(plan.prefix.counted_bytes), plan.request.num_users,
                   Bytes(plan.own.counted_bytes), Bytes(plan.total.counted_bytes))});
  lines.push_back(
      {"committed", "each page class in whole extents of 2 MiB",
       fmt::format("{}, of it slack {}", Bytes(plan.committed_bytes), Bytes(plan.slack_bytes()))});
}

void ExplainMemory(const Plan& plan, std::vector<Explanation>& lines) {
  const MemoryPlan& memory = plan.memory;
  lines.push_back({"KV budget", memory.budget_source,
                   fmt::format("memory {}, weights {}, work {}: {}", Bytes(memory.total_bytes),
                               Bytes(memory.known_weight_bytes()), Bytes(memory.work_bytes),
                               Bytes(memory.budget_bytes))});
  lines.push_back({"users in the budget", "(budget - shared prefix) / own pages, rounded down",
                   fmt::format("({} - {}) / {} = {}", Bytes(memory.budget_bytes),
                               Bytes(plan.prefix.counted_bytes), Bytes(plan.own.counted_bytes),
                               GroupDigits(plan.users_in_budget))});
}

void ExplainTimes(const Plan& plan, std::vector<Explanation>& lines) {
  if (!plan.roofline.has_value()) return;
  const Roofline& roofline = *plan.roofline;
  const double bandwidth = roofline.rates.bytes_per_second, flops = roofline.rates.flops;
  lines.push_back({"time to the first token",
                   "the longer of: 2 x active parameters x tokens + attention, over FLOPS; "
                   "weights over bandwidth",
                   fmt::format("{:.4g} / {:.4g} FLOPS: {:.4g} s", roofline.prefill_flops, flops,
                               roofline.prefill_seconds)});
  lines.push_back(
      {"time of a token for all users",
       "the longer of: weights + users x KV over bandwidth; users x operations over "
       "FLOPS",
       fmt::format("{:.4g} B / {:.4g} B/s, {:.4g} / {:.4g} FLOPS: {:.4g} s", roofline.read_bytes,
                   bandwidth, roofline.step_flops, flops, roofline.step_seconds)});
}

}  // namespace

std::vector<Explanation> Explain(const Plan& plan) {
  std::vector<Explanation> lines;
  ExplainTokens(plan, lines);
  ExplainPages(plan, lines);
  ExplainMemory(plan, lines);
  ExplainTimes(plan, lines);
  return lines;
}

}  // namespace quire
