// Which waiting sequences may start in a step. For schedule.cc.
//
// Threading: as the draft.
#pragma once

#include "schedule/step_draft.h"

namespace quire {

// Adds items for those that may start, refuses those that never can, or preempts running ones of
// lower priority for the first of them. draft->prompts gets the new items; it has the running ones.
void Admit(StepDraft* draft);

// The next page of `follower` will be full of the same tokens when `leader` has computed on: then
// the follower can take it over.
bool ComputesSamePage(const KvCache& cache, const StepDraft::Item& leader,
                      const StepDraft::Item& follower);

}  // namespace quire
