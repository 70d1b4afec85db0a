// ConfigParams: how many parameters a model has, by the tensors that its family's layers have.
//
// Without layers that predict further tokens (multi-token prediction), and without the vision part
// of a multimodal model.
//
// Threads: a pure function.
#pragma once

#include "base/status.h"
#include "plan/config_families.h"
#include "plan/config_fields.h"
#include "plan/kv_model.h"

namespace quire {

// Sets num_params and num_active_params, or neither and a note where a field is missing.
// kInvalidFile if a field holds another thing than the number that it should.
// Requires: the layers and heads of `model` are set.
Status CountParams(const ConfigFamily& family, const ConfigFields& fields, KvModel& model);

}  // namespace quire
