#include "cache/tenant_shares.h"

#include "base/check.h"

namespace quire {

void TenantShares::SetShare(TenantId tenant, double share) {
  QUIRE_CHECK(share > 0);
  At(tenant).share = share;
}

void TenantShares::Add(TenantId tenant, uint64_t bytes) {
  At(tenant).cached_bytes += bytes;
  ++num_cached_;
}

void TenantShares::Subtract(TenantId tenant, uint64_t bytes) {
  QUIRE_CHECK(cached_bytes(tenant) >= bytes && num_cached_ > 0);
  tenants_[tenant].cached_bytes -= bytes;
  --num_cached_;
}

void TenantShares::Touch(TenantId tenant, uint64_t num_nodes) {
  num_touched_ += num_nodes;
  At(tenant).last_touch = num_touched_;
}

NodeId TenantShares::Choose(const EvictionPolicy& policy) const {
  NodeId over = kNoNode, cheapest = kNoNode;
  double most = 0, least = 0;
  bool over_is_idle = false;
  for (TenantId id = 0; id < tenants_.size(); ++id) {
    const Tenant& tenant = tenants_[id];
    if (tenant.cached_bytes == 0) continue;
    const NodeId victim = policy.Victim(id);
    if (victim == kNoNode) continue;
    const bool is_idle = num_touched_ - tenant.last_touch > kIdleTurnovers * num_cached_;
    const double bytes_for_share = static_cast<double>(tenant.cached_bytes) / tenant.share;
    if (over == kNoNode || (is_idle != over_is_idle ? is_idle : bytes_for_share > most)) {
      over = victim;
      most = bytes_for_share;
      over_is_idle = is_idle;
    }
    const double worth = policy.Worth(victim);
    if (cheapest == kNoNode || worth < least) {
      cheapest = victim;
      least = worth;
    }
  }
  if (over == kNoNode || over_is_idle) return over;
  return kLendFactor * least < policy.Worth(over) ? cheapest : over;
}

TenantShares::Tenant& TenantShares::At(TenantId tenant) {
  if (tenant >= tenants_.size()) tenants_.resize(tenant + 1);
  return tenants_[tenant];
}

}  // namespace quire
