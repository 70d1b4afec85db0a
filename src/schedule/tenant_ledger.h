// TenantLedger: how many tokens each tenant has got, for the order between tenants.
//
// A tenant that comes back after a time without requests starts level with the tenant that has got
// least of those that have some: it gets its share from now on, and no more for the time before.
// Paper: Sheng et al., Fairness in Serving Large Language Models, OSDI 2024 (virtual token
// counter).
//
// Threading: not thread-safe; owned by the engine thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "schedule/schedule.h"

namespace quire {

class TenantLedger {
 public:
  // Of the machine, against other tenants' shares; > 0; 1 unless set.
  void SetShare(TenantId tenant, double share);

  // One of its requests came, computed tokens, or ended.
  void Arrive(TenantId tenant);
  void Serve(TenantId tenant, uint64_t num_tokens) {
    services_[tenant].served_tokens += num_tokens;
  }
  void Leave(TenantId tenant);

  // [TenantId] for ScheduleState::tenants.
  std::span<const TenantService> services() const { return services_; }

 private:
  void Know(TenantId tenant);

  std::vector<TenantService> services_;
  std::vector<uint64_t> num_live_;  // [TenantId]
};

}  // namespace quire
