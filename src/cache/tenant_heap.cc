#include "cache/tenant_heap.h"

#include "base/check.h"
#include "base/errors.h"

namespace quire {

void TenantHeap::Reserve(uint32_t num_tenants) {
  if (num_tenants <= places_.size()) return;
  places_.resize(num_tenants, kNowhere);
  heap_.reserve(places_.capacity());
}

bool TenantHeap::HasAnother(TenantId tenant, double most) const {
  if (empty()) return false;
  if (top() != tenant) return least() <= most;
  for (uint32_t at = 1; at <= 2 && at < heap_.size(); ++at)
    if (heap_[at].number <= most) return true;
  return false;
}

void TenantHeap::Set(TenantId tenant, double number) {
  QUIRE_CHECK(tenant < places_.size());
  uint32_t at = places_[tenant];
  if (at == kNowhere) {
    at = static_cast<uint32_t>(heap_.size());
    heap_.push_back({});
  }
  Sift(at, {number, tenant});
}

void TenantHeap::Erase(TenantId tenant) {
  const uint32_t at = places_[tenant];
  if (at == kNowhere) return;
  places_[tenant] = kNowhere;
  const Entry last = heap_.back();
  heap_.pop_back();
  if (last.tenant != tenant) Sift(at, last);
}

void TenantHeap::Place(uint32_t at, const Entry& entry) {
  heap_[at] = entry;
  places_[entry.tenant] = at;
}

void TenantHeap::Sift(uint32_t at, const Entry& entry) {
  while (at > 0 && entry < heap_[(at - 1) / 2]) {
    Place(at, heap_[(at - 1) / 2]);
    at = (at - 1) / 2;
  }
  const auto size = static_cast<uint32_t>(heap_.size());
  for (uint32_t child = 2 * at + 1; child < size; child = 2 * at + 1) {
    if (child + 1 < size && heap_[child + 1] < heap_[child]) ++child;
    if (!(heap_[child] < entry)) break;
    Place(at, heap_[child]);
    at = child;
  }
  Place(at, entry);
}

Status TenantHeap::CheckInvariants() const {
  uint32_t num_placed = 0;
  for (const uint32_t place : places_) num_placed += place != kNowhere ? 1 : 0;
  if (num_placed != heap_.size())
    return Internal("[cache.tenant.3] {} tenants are in the heap, {} know a place", heap_.size(),
                    num_placed);
  for (uint32_t at = 0; at < heap_.size(); ++at)
    if (places_[heap_[at].tenant] != at || (at > 0 && heap_[at] < heap_[(at - 1) / 2]))
      return Internal("[cache.tenant.3] tenant {} stands at {}", heap_[at].tenant, at);
  return OkStatus();
}

}  // namespace quire
