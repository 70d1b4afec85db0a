#include "plan/roofline.h"

#include <algorithm>

namespace quire {
namespace {

// Operations of attention for the tokens [begin, end) of a prompt.
double PromptAttentionFlops(const KvModel& model, double begin, double end) {
  double flops = 0;
  for (const KvLayers& layers : model.groups) {
    KvModel one = model;
    one.groups = {layers};
    const double window = layers.window;
    // Position t sees t + 1 keys, or the window: the mean over the tokens.
    const double turn = layers.window == 0 ? end : std::clamp(window, begin, end);
    const double growing = (turn - begin) * (turn + begin) / 2;
    const double flat = (end - turn) * window;
    one.groups.front().window = 0;
    flops += AttentionFlops(one, growing + flat);
  }
  return flops;
}

}  // namespace

double AttentionFlops(const KvModel& model, double keys) {
  double flops = 0;
  for (const KvLayers& layers : model.groups) {
    const double seen = layers.window == 0 ? keys : std::min<double>(keys, layers.window);
    // A multiply and an add for each value of K, in the score, and of V, in the sum. Latent
    // attention scores with latent and key part, and sums latents.
    const double values = layers.is_latent() ? 2.0 * layers.head_dim_k + layers.latent_rope_dim
                                             : double{1} * layers.head_dim_k + layers.head_dim_v;
    const uint32_t num_heads = std::max(model.num_q_heads, layers.num_kv_heads);
    flops += 2.0 * layers.num_layers * num_heads * values * seen;
  }
  return flops;
}

std::optional<Roofline> MakeRoofline(const KvModel& model, const RooflineLoad& load,
                                     const MachineRates& rates) {
  if (!model.num_params.has_value() || *model.num_params == 0) return {};
  if (!(rates.bytes_per_second > 0) || !(rates.flops > 0)) return {};
  const auto all = static_cast<double>(*model.num_params);
  const double active =
      std::min(all, static_cast<double>(model.num_active_params.value_or(*model.num_params)));
  const auto weights = static_cast<double>(load.weight_bytes);
  const double active_weights = weights * (active / all);
  const auto users = static_cast<double>(load.num_users);
  const auto kv = static_cast<double>(load.kv_bytes);

  Roofline roofline{.rates = rates};
  const double begin = load.shared_tokens, end = load.tokens;
  roofline.prefill_flops = (end - begin) * 2 * active + PromptAttentionFlops(model, begin, end);
  const double prefill_read =
      std::min(weights, active_weights * (end - begin)) / rates.bytes_per_second;
  const double prefill_compute = roofline.prefill_flops / rates.flops;
  roofline.prefill_seconds = std::max(prefill_read, prefill_compute);
  roofline.prefill_is_compute_bound = prefill_compute >= prefill_read;

  const double token_flops = 2 * active + AttentionFlops(model, end);
  const auto read = [&](double n) { return std::min(weights, active_weights * n) + n * kv; };
  const auto step = [&](double n) {
    return std::max(read(n) / rates.bytes_per_second, n * token_flops / rates.flops);
  };
  roofline.read_bytes = read(users);
  roofline.step_flops = users * token_flops;
  roofline.step_seconds = step(users);
  roofline.step_is_compute_bound =
      roofline.step_flops / rates.flops > roofline.read_bytes / rates.bytes_per_second;
  roofline.alone_seconds = step(1);
  // weights / B + n kv / B = n flops / F
  const double gain = token_flops / rates.flops - kv / rates.bytes_per_second;
  if (gain > 0) roofline.knee_users = std::max(1.0, weights / rates.bytes_per_second / gain);
  return roofline;
}

}  // namespace quire
