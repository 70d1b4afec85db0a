#include "plan/config_exercise.h"

#include <algorithm>

#include "base/check.h"
#include "plan/config_json.h"
#include "plan/formula_bytes.h"

namespace quire {

bool ExerciseConfig(std::string_view text) {
  const StatusOr<KvModel> model = ReadConfigJson(text);
  if (!model.ok()) {
    QUIRE_CHECK(!model.status().message().empty());
    QUIRE_CHECK(ExitCode(model.status().code()) == 2 || ExitCode(model.status().code()) == 3);
    return false;
  }
  QUIRE_CHECK(CheckKvModel(*model).ok());
  uint32_t num_layers = 0;
  for (const KvLayers& layers : model->groups) {
    QUIRE_CHECK(layers.num_layers > 0 && layers.num_kv_heads > 0 && layers.head_dim_k > 0);
    QUIRE_CHECK((layers.head_dim_v == 0) == layers.is_latent());
    num_layers += layers.num_layers;
  }
  QUIRE_CHECK(num_layers == model->num_layers);
  QUIRE_CHECK(std::is_sorted(model->groups.begin(), model->groups.end(),
                             [](const auto& a, const auto& b) { return a.window < b.window; }));
  QUIRE_CHECK(FormulaBytes(*model, kMaxPlanContext, 32) <= uint64_t{1} << 62);
  QUIRE_CHECK(model->num_active_params.value_or(0) <= model->num_params.value_or(0));
  QUIRE_CHECK(model->num_q_heads > 0 && model->q_head_dim > 0 && model->v_head_dim > 0);
  return true;
}

}  // namespace quire
