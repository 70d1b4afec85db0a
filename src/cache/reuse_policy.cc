#include "cache/reuse_policy.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/errors.h"

namespace quire {
namespace {

constexpr int kNumClasses = ReuseEstimate::kNumClasses;
constexpr int kNumBuckets = ReuseEstimate::kNumBuckets;

// In touches of a tenant.
constexpr uint64_t kMovePeriod = 8;       // how exactly slots follow their ages
constexpr uint64_t kUpdatePeriod = 1024;  // how soon worths follow the counts

uint32_t NumGhosts(uint32_t max_nodes) {
  QUIRE_CHECK(max_nodes <= ReusePolicy::kMostNodes);
  return ReusePolicy::kGhostsPerNode * max_nodes + ReusePolicy::kMinGhosts;
}

}  // namespace

struct ReusePolicy::Tenant {
  explicit Tenant(uint32_t page_size) : estimate(page_size) {}

  ReuseEstimate estimate;
  uint64_t clock = 0;
  uint32_t num_nodes = 0, num_ghosts = 0;
  List by_age[kNumClasses][kNumBuckets];
  List evictable[kNumClasses][kNumBuckets];
  List evictable_tails;
  List ghosts;
};

ReusePolicy::ReusePolicy(uint32_t max_nodes, uint32_t page_size)
    : max_nodes_(max_nodes),
      page_size_(page_size),
      slots_(size_t{max_nodes} + NumGhosts(max_nodes)),
      free_ghosts_(NumGhosts(max_nodes)),
      hash_heads_(std::bit_ceil(NumGhosts(max_nodes))),
      hash_shift_(64 - std::countr_zero(hash_heads_.size())) {}

ReusePolicy::~ReusePolicy() = default;

void ReusePolicy::Insert(NodeId node, const CachedNode& what) {
  QUIRE_CHECK(node < max_nodes_ && !slots_[node].is_inserted);
  while (what.tenant >= tenants_.size()) tenants_.push_back(std::make_unique<Tenant>(page_size_));
  Slot& slot = slots_[node];
  slot = {};
  slot.key = what.key;
  slot.tenant = what.tenant;
  slot.is_inserted = true;
  slot.is_tail = what.is_tail;
  Tenant& tenant = TenantOf(slot);
  ++tenant.num_nodes;
  if (slot.is_tail) {
    TouchTail(slot);
    Advance(tenant);
    return;
  }
  const SlotId ghost = FindGhost(what.key, what.tenant);
  if (ghost != kNoNode) {
    const Slot& before = slots_[ghost];
    tenant.estimate.CountHit(before.page_class, before.bucket);
    slot.page_class = std::min<uint8_t>(before.page_class + 1, kNumClasses - 1);
    DropGhost(ghost);
  }
  Enter(node);
  Advance(tenant);
}

void ReusePolicy::Hit(NodeId node) {
  Slot& slot = slots_[node];
  QUIRE_CHECK(node < max_nodes_ && slot.is_inserted);
  Tenant& tenant = TenantOf(slot);
  const bool was_evictable = slot.is_evictable;
  SetEvictable(node, false);
  if (!slot.is_tail) {
    tenant.estimate.CountHit(slot.page_class, slot.bucket);
    Leave(node);
  }
  slot.page_class = std::min<uint8_t>(slot.page_class + 1, kNumClasses - 1);
  if (slot.is_tail)
    TouchTail(slot);
  else
    Enter(node);
  Advance(tenant);
  SetEvictable(node, was_evictable);
}

void ReusePolicy::SetEvictable(NodeId node, bool evictable) {
  Slot& slot = slots_[node];
  QUIRE_CHECK(node < max_nodes_ && slot.is_inserted);
  if (evictable == slot.is_evictable) return;
  slot.is_evictable = evictable;
  if (evictable)
    Append<&Slot::by_order>(node, EvictableList(slot));
  else
    Erase<&Slot::by_order>(node, EvictableList(slot));
}

void ReusePolicy::Remove(NodeId node) {
  SetEvictable(node, false);
  Slot& slot = slots_[node];
  slot.is_inserted = false;
  Tenant& tenant = TenantOf(slot);
  --tenant.num_nodes;
  if (!slot.is_tail) LeaveGhost(node);
  while (tenant.num_ghosts > NumGhosts(tenant.num_nodes)) DropGhost(tenant.ghosts.first);
}

NodeId ReusePolicy::Victim(TenantId tenant_id) const {
  if (tenant_id >= tenants_.size()) return kNoNode;
  const Tenant& tenant = *tenants_[tenant_id];
  if (tenant.evictable_tails.first != kNoNode) return tenant.evictable_tails.first;
  NodeId victim = kNoNode;
  double least = 0;
  for (int page_class = 0; page_class < kNumClasses; ++page_class)
    for (int bucket = kNumBuckets; bucket-- > 0;) {
      const NodeId first = tenant.evictable[page_class][bucket].first;
      if (first == kNoNode) continue;
      const double worth = tenant.estimate.Worth(page_class, bucket);
      if (victim != kNoNode && worth >= least) continue;
      victim = first;
      least = worth;
    }
  return victim;
}

double ReusePolicy::Worth(NodeId node) const {
  const Slot& slot = slots_[node];
  const Tenant& tenant = *tenants_[slot.tenant];
  const int bucket =
      slot.is_tail ? ReuseEstimate::BucketOf(static_cast<uint32_t>(tenant.clock) - slot.touched)
                   : slot.bucket;
  return tenant.estimate.Worth(slot.page_class, bucket);
}

void ReusePolicy::TouchTail(Slot& slot) {
  slot.touched = static_cast<uint32_t>(++TenantOf(slot).clock);
}

template <ReusePolicy::Links ReusePolicy::Slot::*kLinks>
void ReusePolicy::Append(SlotId slot, List* list) {
  slots_[slot].*kLinks = {.previous = list->last, .next = kNoNode};
  (list->last == kNoNode ? list->first : (slots_[list->last].*kLinks).next) = slot;
  list->last = slot;
}

template <ReusePolicy::Links ReusePolicy::Slot::*kLinks>
void ReusePolicy::Erase(SlotId slot, List* list) {
  const Links links = slots_[slot].*kLinks;
  (links.previous == kNoNode ? list->first : (slots_[links.previous].*kLinks).next) = links.next;
  (links.next == kNoNode ? list->last : (slots_[links.next].*kLinks).previous) = links.previous;
}

ReusePolicy::List* ReusePolicy::EvictableList(const Slot& slot) {
  Tenant& tenant = TenantOf(slot);
  return slot.is_tail ? &tenant.evictable_tails : &tenant.evictable[slot.page_class][slot.bucket];
}

void ReusePolicy::Enter(SlotId id) {
  Slot& slot = slots_[id];
  Tenant& tenant = TenantOf(slot);
  slot.touched = static_cast<uint32_t>(++tenant.clock);
  slot.bucket = 0;
  Append<&Slot::by_age>(id, &tenant.by_age[slot.page_class][0]);
}

void ReusePolicy::Leave(SlotId id) {
  const Slot& slot = slots_[id];
  Erase<&Slot::by_age>(id, &TenantOf(slot).by_age[slot.page_class][slot.bucket]);
}

void ReusePolicy::Advance(Tenant& tenant) {
  if (tenant.clock % kMovePeriod != 0) return;
  const auto now = static_cast<uint32_t>(tenant.clock);
  for (int page_class = 0; page_class < kNumClasses; ++page_class)
    for (int bucket = 0; bucket < kNumBuckets - 1; ++bucket) {  // young first: some move twice
      const List& list = tenant.by_age[page_class][bucket];
      const uint32_t end = ReuseEstimate::BucketStart(bucket + 1);
      while (list.first != kNoNode && now - slots_[list.first].touched >= end) {
        tenant.estimate.CountSurvival(page_class, bucket);
        MoveToBucket(list.first, bucket + 1);
      }
    }
  if (tenant.clock % kUpdatePeriod == 0) tenant.estimate.Update();
}

void ReusePolicy::MoveToBucket(SlotId id, int bucket) {
  Slot& slot = slots_[id];
  if (slot.is_evictable) Erase<&Slot::by_order>(id, EvictableList(slot));
  Leave(id);
  slot.bucket = static_cast<uint8_t>(bucket);
  Append<&Slot::by_age>(id, &TenantOf(slot).by_age[slot.page_class][bucket]);
  if (slot.is_evictable) Append<&Slot::by_order>(id, EvictableList(slot));
}

void ReusePolicy::LeaveGhost(NodeId node) {
  const Slot& slot = slots_[node];
  Tenant& tenant = TenantOf(slot);
  if (free_ghosts_.num_free() == 0) {
    if (tenant.num_ghosts == 0) return Leave(node);
    DropGhost(tenant.ghosts.first);
  }
  const SlotId ghost = max_nodes_ + free_ghosts_.TakeLowest();
  slots_[ghost] = slot;
  // In the node's place: the list stays in order of touch.
  List* ages = &tenant.by_age[slot.page_class][slot.bucket];
  const Links& links = slot.by_age;
  (links.previous == kNoNode ? ages->first : slots_[links.previous].by_age.next) = ghost;
  (links.next == kNoNode ? ages->last : slots_[links.next].by_age.previous) = ghost;
  Append<&Slot::by_order>(ghost, &tenant.ghosts);
  ++tenant.num_ghosts;
  SlotId& head = hash_heads_[HashOf(slot.key)];
  slots_[ghost].next_in_hash = head;
  head = ghost + 1;
}

size_t ReusePolicy::HashOf(uint64_t key) const {
  return key * 0x9E3779B97F4A7C15u >> hash_shift_;  // Fibonacci hashing
}

ReusePolicy::SlotId ReusePolicy::FindGhost(uint64_t key, TenantId tenant) const {
  SlotId next = hash_heads_[HashOf(key)];
  while (next != 0) {
    const Slot& ghost = slots_[next - 1];
    if (ghost.key == key && ghost.tenant == tenant) return next - 1;
    next = ghost.next_in_hash;
  }
  return kNoNode;
}

void ReusePolicy::DropGhost(SlotId ghost) {
  const Slot& slot = slots_[ghost];
  Tenant& tenant = TenantOf(slot);
  Leave(ghost);
  Erase<&Slot::by_order>(ghost, &tenant.ghosts);
  --tenant.num_ghosts;
  SlotId* next = &hash_heads_[HashOf(slot.key)];
  while (*next != ghost + 1) next = &slots_[*next - 1].next_in_hash;
  *next = slot.next_in_hash;
  free_ghosts_.GiveBack(ghost - max_nodes_);
}

Status ReusePolicy::CheckInvariants() const {
  std::vector<NodeId> best(tenants_.size(), kNoNode);
  for (NodeId node = 0; node < max_nodes_; ++node) {
    const Slot& slot = slots_[node];
    if (!slot.is_inserted || !slot.is_evictable) continue;
    NodeId& other = best[slot.tenant];
    const bool goes_before =
        other == kNoNode ||
        (slot.is_tail != slots_[other].is_tail ? slot.is_tail
                                               : !slot.is_tail && Worth(node) < Worth(other));
    if (goes_before) other = node;
  }
  for (TenantId id = 0; id < tenants_.size(); ++id) {
    const NodeId victim = Victim(id);
    const NodeId need = best[id];
    const bool is_right = victim == kNoNode || need == kNoNode
                              ? victim == need
                              : slots_[victim].is_inserted && slots_[victim].is_evictable &&
                                    slots_[victim].tenant == id &&
                                    slots_[victim].is_tail == slots_[need].is_tail &&
                                    (slots_[need].is_tail || Worth(victim) == Worth(need));
    if (!is_right)
      return Internal("[cache.evict.1] tenant {}: victim {}, need one worth as little as {}", id,
                      victim, need);
  }
  return OkStatus();
}

}  // namespace quire
