// PlanText: a plan as one screen of text, 80 columns wide: what there is, what is wanted, what
// fits, each codec beside the others, the verdict and what to change.
//
// Threads: a pure function.
#pragma once

#include <string>

#include "plan/plan.h"

namespace quire {

struct PlanTextOptions {
  bool explains = false;  // the formulas with their numbers after it
  bool has_colour = false;
};

std::string PlanText(const Plan& plan, const PlanTextOptions& options);

}  // namespace quire
