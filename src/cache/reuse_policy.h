// Eviction of the page that is least likely to be asked for again, as its tenant's requests have
// shown (cache/reuse_estimate.h); tails first.
//
// A tail goes before its tenant's full pages since it costs little to compute again. Its worth is
// that of a full page with its hits and age, and counts only against other tenants
// (cache/tenant_shares.h): short prompts leave nothing but tails, and a flood may not take them.
//
// Pages that have left are remembered for a while: a ghost, a key without a page, ages on and
// counts when its prefix comes again. So the policy learns what pages are worth at ages that none
// of them reaches in a small cache, and a page that returns keeps its class. A tenant has at most
// kGhostsPerNode ghosts for each node, and kMinGhosts: a flood fills no other tenant's memory.
//
// Each tenant has a clock (pages it has touched) and an estimate of its own. Nodes and ghosts of a
// class and bucket stand in a list in order of touch, and move on to the next bucket as the clock
// does; evictable nodes stand in a second list, in the order in which they became evictable. A
// victim is the first of the evictable list that is worth least.
//
// Memory: 5 slots of 40 bytes and some for each node, committed as it is touched; 4 KiB for each
// tenant. Cost: amortised O(1) a call; Victim() looks at kNumClasses x kNumBuckets lists.
#pragma once

#include <memory>
#include <vector>

#include "base/lazy_array.h"
#include "cache/eviction_policy.h"
#include "cache/free_ids.h"
#include "cache/reuse_estimate.h"

namespace quire {

class ReusePolicy : public EvictionPolicy {
 public:
  static constexpr uint32_t kGhostsPerNode = 4;
  static constexpr uint32_t kMinGhosts = 1024;
  static constexpr uint32_t kMostNodes = 1 << 28;

  // page_size: tokens in a full page. Requires: max_nodes <= kMostNodes, page_size > 0.
  ReusePolicy(uint32_t max_nodes, uint32_t page_size);
  ~ReusePolicy() override;

  void Insert(NodeId node, const CachedNode& what) override;
  void Hit(NodeId node) override;
  void SetEvictable(NodeId node, bool evictable) override;
  void Remove(NodeId node) override;
  NodeId Victim(TenantId tenant) const override;
  double Worth(NodeId node) const override;
  Status CheckInvariants() const override;

 private:
  using SlotId = uint32_t;  // below max_nodes: the node of this id; from there on: ghosts

  struct Links {
    SlotId previous, next;
  };
  struct Slot {
    uint64_t key;
    TenantId tenant;
    uint32_t touched;     // the tenant's clock then, low 32 bits
    Links by_age;         // the list of the tenant's class and bucket; not of tails
    Links by_order;       // node: evictable ones; ghost: all of the tenant, oldest first
    SlotId next_in_hash;  // ghosts
    uint8_t page_class, bucket;
    bool is_inserted : 1, is_tail : 1, is_evictable : 1;
  };
  static_assert(sizeof(Slot) == 40);
  struct List {
    SlotId first = kNoNode, last = kNoNode;
  };
  struct Tenant;

  template <Links Slot::*kLinks>
  void Append(SlotId slot, List* list);
  template <Links Slot::*kLinks>
  void Erase(SlotId slot, List* list);

  Tenant& TenantOf(const Slot& slot) { return *tenants_[slot.tenant]; }
  List* EvictableList(const Slot& slot);
  // The slot is touched now: bucket 0 of its class, at the end.
  void Enter(SlotId slot);
  void Leave(SlotId slot);
  // A tail has no place by age: its age is looked at when its worth is asked for.
  void TouchTail(Slot& slot);
  // Moves slots to the buckets of their ages. Now and then, computes worths anew.
  void Advance(Tenant& tenant);
  void MoveToBucket(SlotId slot, int bucket);

  // What stays of a full page that leaves: a ghost in its place, or nothing.
  void LeaveGhost(NodeId node);
  SlotId FindGhost(uint64_t key, TenantId tenant) const;
  void DropGhost(SlotId ghost);
  size_t HashOf(uint64_t key) const;

  uint32_t max_nodes_, page_size_;
  LazyArray<Slot> slots_;
  FreeIds free_ghosts_;
  LazyArray<SlotId> hash_heads_;  // slot + 1; 0: none
  int hash_shift_;
  std::vector<std::unique_ptr<Tenant>> tenants_;
};

}  // namespace quire
