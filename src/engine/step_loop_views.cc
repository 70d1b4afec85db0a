// StepLoop: what others want to know of it: counters, and the list of live requests.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "engine/step_loop.h"

namespace quire {

EngineStats StepLoop::stats() const {
  EngineStats stats = counts_;
  const KvCache& cache = runner_->cache();
  const PagePool& pool = cache.pool();
  std::map<PageId, uint32_t> slots;  // of the pages of the first group, each counted once
  for (const auto& live : sequences_) {
    ++(live->pages.has_value() ? stats.num_running : stats.num_waiting);
    if (!live->pages.has_value()) continue;
    const PageTable& table = live->pages->table(0);
    const uint32_t page_size = cache.shape().page_size, length = live->pages->length();
    for (uint32_t page = table.first_page(); page < table.num_pages(); ++page) {
      const PageRef& form = table.sealed(page) ? table.sealed(page) : table.open(page);
      uint32_t& used = slots[form.id() * 2 + (table.sealed(page) ? 1 : 0)];
      used = std::max(used, std::min(page_size, length - page * page_size));
    }
  }
  stats.num_deferred = std::min(num_deferred_, stats.num_waiting);
  for (const auto& [page, used] : slots) stats.used_slots += used;
  stats.held_slots = slots.size() * cache.shape().page_size;
  stats.kv_budget_bytes = pool.budget_bytes();
  stats.kv_held_bytes = pool.held_bytes();
  stats.kv_cached_bytes = pool.cached_bytes();
  stats.kv_pinned_bytes = pool.pinned_bytes();
  stats.kv_free_bytes = pool.free_bytes();
  stats.kv_committed_bytes = pool.committed_bytes();
  stats.kv_slack_bytes = pool.slack_bytes();
  stats.num_chunks_read = runner_->num_chunks_read();
  stats.num_kv_saturated = runner_->num_kv_saturated();
  stats.matches = cache.match_counts();
  if (queue_ != nullptr) {
    stats.num_refused_for_requests = queue_->num_refused_for_requests();
    stats.num_refused_for_tokens = queue_->num_refused_for_tokens();
  }
  return stats;
}

std::vector<RequestInfo> StepLoop::requests() const {
  std::vector<RequestInfo> infos;
  std::map<const SharedRequest*, size_t> places;
  std::map<const SharedRequest*, std::set<std::pair<PageClass, PageId>>> pages;
  for (const auto& live : sequences_) {
    const SharedRequest& shared = *live->shared;
    const auto [place, is_new] = places.emplace(&shared, infos.size());
    if (is_new) infos.push_back(InfoOf(shared));
    RequestInfo& info = infos[place->second];
    if (!live->pages.has_value()) continue;
    ++info.num_running;
    for (uint32_t g = 0; g < live->pages->num_tables(); ++g) {
      const PageTable& table = live->pages->table(g);
      for (uint32_t page = table.first_page(); page < table.num_pages(); ++page)
        for (const PageRef* form : {&table.open(page), &table.sealed(page)}) {
          if (!*form || !pages[&shared].emplace(form->page_class(), form->id()).second) continue;
          ++info.held_pages;
          info.held_bytes += runner_->cache().pool().stride(form->page_class());
        }
    }
  }
  return infos;
}

RequestInfo StepLoop::InfoOf(const SharedRequest& shared) {
  const Request& request = shared.request;
  const Answer& answer = *shared.answer;
  RequestInfo info{.id = answer.id(),
                   .label = request.label,
                   .tenant = request.tenant,
                   .phase = answer.phase(),
                   .num_choices = request.num_choices,
                   .num_preemptions = answer.num_preemptions(),
                   .priority = request.priority,
                   .prompt_len = static_cast<uint32_t>(request.prompt.size()),
                   .num_prompt_computed = answer.num_prompt_computed(),
                   .num_cached = answer.num_cached(),
                   .seconds = answer.SecondsSinceSubmit()};
  for (uint32_t choice = 0; choice < answer.num_choices(); ++choice)
    info.num_generated += answer.tokens(choice).size();
  return info;
}

bool StepLoop::Abort(uint64_t id) {
  const auto live = std::ranges::find_if(
      sequences_, [&](const auto& other) { return other->shared->answer->id() == id; });
  if (live == sequences_.end()) return false;
  (*live)->shared->answer->Abort();
  return true;
}

}  // namespace quire
