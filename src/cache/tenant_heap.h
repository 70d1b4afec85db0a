// TenantHeap: a binary heap of tenants by a number, with the least on top; of equal numbers the
// lower id. A tenant is in it once or not at all, and its number may change.
//
// Cost: O(log tenants) a change. Nothing allocates, except Reserve().
//
// Invariants (CheckInvariants(), tenant_heap_test.cc):
//   [cache.tenant.3] No entry is before its parent, and each tenant knows its place.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/status.h"
#include "cache/eviction_policy.h"

namespace quire {

class TenantHeap {
 public:
  // Tenants below `num_tenants` may come in.
  void Reserve(uint32_t num_tenants);

  bool empty() const { return heap_.empty(); }
  bool contains(TenantId tenant) const { return places_[tenant] != kNowhere; }
  // Both require !empty().
  TenantId top() const { return heap_[0].tenant; }
  double least() const { return heap_[0].number; }
  // Whether there is a tenant besides `tenant` with a number <= most.
  bool HasAnother(TenantId tenant, double most) const;

  // Puts it in, or changes its number.
  void Set(TenantId tenant, double number);
  // Nothing if it is not there.
  void Erase(TenantId tenant);

  Status CheckInvariants() const;

 private:
  static constexpr uint32_t kNowhere = ~uint32_t{0};
  struct Entry {
    double number;
    TenantId tenant;
    bool operator<(const Entry& other) const {
      return std::pair(number, tenant) < std::pair(other.number, other.tenant);
    }
  };

  void Place(uint32_t at, const Entry& entry);
  void Sift(uint32_t at, const Entry& entry);  // the place `at` is empty

  std::vector<Entry> heap_;
  std::vector<uint32_t> places_;  // [tenant] in heap_
};

}  // namespace quire
