// PlanProgress: which items of a plan are done, for workers that take its items from a counter.
//
// Items that go on with the states of a run wait for it. They stand behind it in the plan, so
// whoever takes one knows that the run's items were taken before and are under way; and those wait
// for smaller indices only. So nothing hangs, however few the workers.
//
// A plan runs once for each layer: `turn` counts these, from 0 on after Build.
//
// Move-only. Threading: Build by one thread, while no worker runs; the others by any worker. All
// workers must have ended a turn before one begins the next. Build allocates nothing once it has
// seen a plan of as many rows and one of as many sequences.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <vector>

#include "attention/plan.h"
#include "base/threads.h"

namespace quire {

class PlanProgress {
 public:
  PlanProgress() = default;
  PlanProgress(PlanProgress&&) = default;
  PlanProgress& operator=(PlanProgress&&) = default;

  // The plan must outlive it, or the next Build.
  void Build(const AttentionPlan& plan) {
    plan_ = &plan;
    const size_t num_heads = plan.shape().num_kv_heads;
    merged_parts_.reserve(plan.rows().size() * num_heads);
    merged_parts_.assign(plan.num_merge_items(), 0);
    // As many as any step of so many sequences has.
    while (runs_.size() < plan.sequences().size() * num_heads) runs_.emplace_back();
    for (size_t i = 0; i < plan.run_items().size(); ++i) runs_[i].Reset();
  }

  // Returns when the item may start.
  void WaitFor(uint32_t item, uint32_t turn) {
    const uint32_t run = plan_->items()[item].after;
    if (run != AttentionItem::kNone) runs_[run].WaitFor(plan_->run_items()[run] * (turn + 1));
  }

  // The merge item that is ready now that this item is done; -1 if none is: the item wrote its
  // output itself, or leaves states to others, or other parts are not done.
  int Finish(uint32_t item, uint32_t turn) {
    const AttentionItem& done = plan_->items()[item];
    if (done.run != AttentionItem::kNone)
      runs_[done.run].Add(plan_->run_items()[done.run] * (turn + 1));
    if (done.merge == AttentionItem::kNone) return -1;
    const std::atomic_ref<uint32_t> num_done(merged_parts_[done.merge]);
    const uint32_t num_parts = plan_->merge_items()[done.merge].num_parts;
    if (num_done.fetch_add(1, std::memory_order_acq_rel) + 1 < num_parts) return -1;
    num_done.store(0, std::memory_order_relaxed);  // for the next turn
    return static_cast<int>(done.merge);
  }

 private:
  const AttentionPlan* plan_ = nullptr;
  std::deque<DoneCounter> runs_;        // of each run and KV head; count on from turn to turn
  std::vector<uint32_t> merged_parts_;  // of each merge item; atomic while workers run
};

}  // namespace quire
