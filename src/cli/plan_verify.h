// PlanVerify: a plan beside the real thing: loads the model, fills a cache with conversations and
// compares bytes, line by line.
//
// Pool bytes must be equal; the process's peak must be within 2 % or 100 MiB of the plan, whichever
// is more, and at most 1 % above it.
#pragma once

#include "base/status.h"
#include "cli/plan_flags.h"
#include "plan/plan.h"

namespace quire {

// Prints a table. Returns the exit code: 0, or 1 if something differs. Without --kv each codec that
// runs; without --users and --ctx a few conversations that fill quickly. kUnsupported for a model
// or a codec that does not run.
StatusOr<int> VerifyPlan(const PlanFlags& flags, const PlanRequest& request);

}  // namespace quire
