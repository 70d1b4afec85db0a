#include "cli/check_list.h"

#include <chrono>

#include "base/errors.h"
#include "base/message_text.h"
#include "base/seconds.h"

namespace quire {

void CheckList::Run(const std::string& name,
                    const std::function<Status(std::string& detail)>& check) {
  const auto start = std::chrono::steady_clock::now();
  CheckResult result{.group = group_, .name = name};
  const Status status = check(result.detail);
  result.seconds = SecondsSince(start);
  result.ok = status.ok();
  if (!result.ok) result.detail = status.message();
  ++num_checks_;
  if (!result.ok) ++num_failed_;
  on_result_(result);
}

Status CheckList::NoDifference(const std::string& difference) {
  return difference.empty() ? OkStatus() : Status(StatusCode::kInternal, difference);
}

Status CheckList::LookAt(const KvCache& cache, bool at_rest) {
  Status status = LookOnce(cache, at_rest);
  ++num_looks_;
  if (!status.ok()) ++num_failed_looks_;
  return status;
}

Status CheckList::LookOnce(const KvCache& cache, bool at_rest) {
  QUIRE_RETURN_IF_ERROR(cache.CheckInvariants());
  const PagePool& pool = cache.pool();
  if (pool.held_bytes() + pool.cached_bytes() + pool.free_bytes() != pool.budget_bytes())
    return Internal("{} bytes held + {} cached + {} free are not the budget of {}",
                    GroupDigits(pool.held_bytes()), GroupDigits(pool.cached_bytes()),
                    GroupDigits(pool.free_bytes()), GroupDigits(pool.budget_bytes()));
  if (at_rest && pool.held_bytes() != 0)
    return Internal("{} bytes are held though no sequence is left", GroupDigits(pool.held_bytes()));
  return OkStatus();
}

}  // namespace quire
