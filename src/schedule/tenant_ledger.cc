#include "schedule/tenant_ledger.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace quire {

void TenantLedger::Know(TenantId tenant) {
  if (tenant < services_.size()) return;
  services_.resize(tenant + 1);
  num_live_.resize(tenant + 1);
}

void TenantLedger::SetShare(TenantId tenant, double share) {
  QUIRE_CHECK(share > 0);
  Know(tenant);
  // What it has got counts by its share: it stays where it was among the others.
  TenantService& service = services_[tenant];
  service.served_tokens =
      static_cast<uint64_t>(static_cast<double>(service.served_tokens) / service.share * share);
  service.share = share;
}

void TenantLedger::Arrive(TenantId tenant) {
  Know(tenant);
  if (num_live_[tenant]++ > 0) return;
  double least = std::numeric_limits<double>::infinity();
  for (size_t other = 0; other < services_.size(); ++other)
    if (other != tenant && num_live_[other] > 0)
      least = std::min(
          least, static_cast<double>(services_[other].served_tokens) / services_[other].share);
  if (least == std::numeric_limits<double>::infinity()) return;
  TenantService& service = services_[tenant];
  service.served_tokens =
      std::max(service.served_tokens, static_cast<uint64_t>(least * service.share));
}

void TenantLedger::Leave(TenantId tenant) {
  QUIRE_CHECK(num_live_[tenant] > 0);
  --num_live_[tenant];
}

}  // namespace quire
