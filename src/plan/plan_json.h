// PlanJson: a plan as the JSON document that `quire plan --json` prints and POST /quire/v1/plan
// answers with. "schema" is raised with every change that is not an addition; all bytes are
// integers; "mark" says how the numbers beside it came about. docs/planner.md lists the fields.
//
// Threads: a pure function.
#pragma once

#include <nlohmann/json.hpp>

#include "plan/plan.h"

namespace quire {

constexpr int kPlanSchema = 1;

nlohmann::ordered_json PlanJson(const Plan& plan);

}  // namespace quire
