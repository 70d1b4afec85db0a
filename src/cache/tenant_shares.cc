#include "cache/tenant_shares.h"

#include "base/check.h"

namespace quire {

void TenantShares::SetShare(TenantId tenant, double share) {
  QUIRE_CHECK(share > 0);
  At(tenant).share = share;
  Mark(tenant);
}

void TenantShares::Add(TenantId tenant, uint64_t bytes) {
  At(tenant).cached_bytes += bytes;
  ++num_cached_;
  Mark(tenant);
}

void TenantShares::Subtract(TenantId tenant, uint64_t bytes) {
  QUIRE_CHECK(cached_bytes(tenant) >= bytes && num_cached_ > 0);
  tenants_[tenant].cached_bytes -= bytes;
  --num_cached_;
  Mark(tenant);
}

void TenantShares::Touch(TenantId tenant, uint64_t num_nodes) {
  num_touched_ += num_nodes;
  At(tenant).last_touch = num_touched_;
  SetIdle(tenant, false);
  MoveToEnd(tenant);
  Mark(tenant);
}

void TenantShares::Mark(TenantId id) {
  Tenant& tenant = At(id);
  if (tenant.is_marked) return;
  tenant.is_marked = true;
  marked_.push_back(id);
}

void TenantShares::Refresh(TenantId id, const EvictionPolicy& policy) {
  Tenant& tenant = tenants_[id];
  tenant.is_marked = false;
  tenant.victim = tenant.cached_bytes == 0 ? kNoNode : policy.Victim(id);
  if (tenant.victim == kNoNode) {
    for (TenantHeap* heap : {&active_, &idle_, &by_worth_}) heap->Erase(id);
    return;
  }
  by_worth_.Set(id, policy.Worth(tenant.victim));
  const double bytes_for_share = static_cast<double>(tenant.cached_bytes) / tenant.share;
  (tenant.is_idle ? active_ : idle_).Erase(id);
  (tenant.is_idle ? idle_ : active_).Set(id, -bytes_for_share);
}

void TenantShares::SetIdle(TenantId id, bool is_idle) {
  Tenant& tenant = tenants_[id];
  if (tenant.is_idle == is_idle) return;
  tenant.is_idle = is_idle;
  Mark(id);
}

void TenantShares::MoveToEnd(TenantId id) {
  Tenant& tenant = tenants_[id];
  if (last_ == id) {
    if (first_active_ == kNone) first_active_ = id;
    return;
  }
  if (first_active_ == id) first_active_ = tenant.next;
  (tenant.previous == kNone ? first_ : tenants_[tenant.previous].next) = tenant.next;
  tenants_[tenant.next].previous = tenant.previous;
  tenants_[last_].next = id;
  tenant.previous = last_;
  tenant.next = kNone;
  last_ = id;
  if (first_active_ == kNone) first_active_ = id;
}

TenantShares::Choice TenantShares::Choose(const EvictionPolicy& policy) {
  // Time has passed, or fewer pages are cached: more are idle. Or the other way round.
  while (first_active_ != kNone && IsIdle(tenants_[first_active_])) {
    SetIdle(first_active_, true);
    first_active_ = tenants_[first_active_].next;
  }
  for (;;) {
    const TenantId before =
        first_active_ == kNone ? last_ : tenants_[first_active_].previous;  // the youngest idle one
    if (before == kNone || IsIdle(tenants_[before])) break;
    SetIdle(before, false);
    first_active_ = before;
  }
  for (const TenantId id : marked_) Refresh(id, policy);
  marked_.clear();

  if (by_worth_.empty()) return {};
  if (!idle_.empty()) {
    const TenantId over = idle_.top();
    return {tenants_[over].victim, by_worth_.HasAnother(over, policy.Worth(tenants_[over].victim))};
  }
  const TenantId over = active_.top();
  const NodeId victim = tenants_[over].victim;
  const double worth = policy.Worth(victim);
  if (kLendFactor * by_worth_.least() < worth) return {tenants_[by_worth_.top()].victim, false};
  return {victim, by_worth_.HasAnother(over, worth)};
}

TenantShares::Tenant& TenantShares::At(TenantId tenant) {
  if (tenant < tenants_.size()) return tenants_[tenant];
  while (tenant >= tenants_.size()) {
    // Never touched: before all that were, and idle if the first of them is.
    const auto id = static_cast<TenantId>(tenants_.size());
    Tenant& added = tenants_.emplace_back();
    added.next = first_;
    added.is_idle = first_active_ != first_;
    (first_ == kNone ? last_ : tenants_[first_].previous) = id;
    if (!added.is_idle) first_active_ = id;
    first_ = id;
  }
  marked_.reserve(tenants_.capacity());
  for (TenantHeap* heap : {&active_, &idle_, &by_worth_})
    heap->Reserve(static_cast<uint32_t>(tenants_.size()));
  return tenants_[tenant];
}

}  // namespace quire
