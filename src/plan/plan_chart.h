// PlanChart: memory against context as an SVG drawing: on the left by number of users, on the right
// by codec, with the KV budget as a line across. It follows the reader's light or dark scheme.
//
// Threads: a pure function. Cost: some hundred counts.
#pragma once

#include <string>

#include "plan/plan.h"

namespace quire {

std::string PlanChart(const Plan& plan);

}  // namespace quire
