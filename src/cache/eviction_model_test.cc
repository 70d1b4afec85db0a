// Model check of the eviction policies: random calls, and the same victims as plain models of maps.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <tuple>
#include <vector>

#include "cache/eviction_policy.h"
#include "cache/reuse_policy.h"

namespace quire {
namespace {

class Model {
 public:
  virtual ~Model() = default;
  virtual void Insert(NodeId node, const CachedNode& what) = 0;
  virtual void Hit(NodeId node) = 0;
  virtual void SetEvictable(NodeId node, bool evictable) = 0;
  virtual void Remove(NodeId node) = 0;
  virtual NodeId Victim(TenantId tenant) const = 0;
  virtual double Worth(NodeId node) const = 0;
};

class LruModel : public Model {
 public:
  void Insert(NodeId node, const CachedNode& what) override {
    nodes_[node] = {.what = what, .touched = ++clock_};
  }
  void Hit(NodeId node) override { nodes_[node].touched = ++clock_; }
  void SetEvictable(NodeId node, bool evictable) override { nodes_[node].evictable = evictable; }
  void Remove(NodeId node) override { nodes_.erase(node); }
  NodeId Victim(TenantId tenant) const override {
    std::tuple<bool, uint64_t, NodeId> first = {true, ~uint64_t{0}, kNoNode};
    for (const auto& [node, state] : nodes_)
      if (state.evictable && state.what.tenant == tenant)
        first = std::min(first, {!state.what.is_tail, state.touched, node});
    return std::get<NodeId>(first);
  }
  double Worth(NodeId) const override { return 0; }

 private:
  struct Node {
    CachedNode what;
    uint64_t touched;
    bool evictable = false;
  };
  std::map<NodeId, Node> nodes_;
  uint64_t clock_ = 0;
};

// One list of everything a tenant has touched, walked through whole at each turn.
class ReuseModel : public Model {
 public:
  explicit ReuseModel(uint32_t max_nodes) : most_ghosts_(4 * max_nodes + 1024) {}

  void Insert(NodeId node, const CachedNode& what) override {
    Page page = {.what = what, .node = node};
    Tenant& tenant = tenants_[what.tenant];
    if (!what.is_tail) {
      auto ghost = tenant.pages.end();  // of two with one key: the one that left last
      for (auto p = tenant.pages.begin(); p != tenant.pages.end(); ++p)
        if (p->node == kNoNode && p->what.key == what.key &&
            (ghost == tenant.pages.end() || p->order > ghost->order))
          ghost = p;
      if (ghost != tenant.pages.end()) {
        tenant.estimate.CountHit(ghost->num_hits, ghost->bucket);
        page.num_hits = std::min(ghost->num_hits + 1, 2);
        tenant.pages.erase(ghost);
      }
    }
    Touch(tenant, page);
  }

  void Hit(NodeId node) override {
    const auto [tenant, page] = Take(node);
    Page touched = page;
    if (!touched.what.is_tail) tenant->estimate.CountHit(page.num_hits, page.bucket);
    touched.num_hits = std::min(page.num_hits + 1, 2);
    if (touched.order != 0) touched.order = ++order_;
    Touch(*tenant, touched);
  }

  void SetEvictable(NodeId node, bool evictable) override {
    for (auto& [id, tenant] : tenants_)
      for (Page& page : tenant.pages)
        if (page.node == node && (page.order != 0) != evictable)
          page.order = evictable ? ++order_ : 0;
  }

  void Remove(NodeId node) override {
    auto [tenant, page] = Take(node);
    if (!page.what.is_tail) {
      const bool has_room = NumGhosts() < most_ghosts_ || DropOldestGhost(*tenant);
      page.node = kNoNode;
      page.order = ++order_;  // of ghosts: when they became one
      // In its place: pages stay in the order of touch.
      const auto place = std::find_if(tenant->pages.begin(), tenant->pages.end(),
                                      [&](const Page& p) { return p.touched > page.touched; });
      if (has_room) tenant->pages.insert(place, page);
    }
    size_t num_nodes = 0, num_ghosts = 0;
    for (const Page& p : tenant->pages) ++(p.node == kNoNode ? num_ghosts : num_nodes);
    for (; num_ghosts > 4 * num_nodes + 1024; --num_ghosts) DropOldestGhost(*tenant);
  }

  NodeId Victim(TenantId id) const override {
    const auto found = tenants_.find(id);
    if (found == tenants_.end()) return kNoNode;
    // Of pages worth the same: never hit ones, then old ones, then those evictable for longest.
    std::tuple<bool, double, int, int, uint64_t, NodeId> first = {true, 2, 0, 0, 0, kNoNode};
    for (const Page& p : found->second.pages) {
      if (p.node == kNoNode || p.order == 0) continue;
      const double worth = p.what.is_tail ? 0 : found->second.estimate.Worth(p.num_hits, p.bucket);
      first = std::min(first, {!p.what.is_tail, worth, p.what.is_tail ? 0 : p.num_hits,
                               p.what.is_tail ? 0 : -p.bucket, p.order, p.node});
    }
    return std::get<NodeId>(first);
  }

  // A tail has no bucket of its own: that of its age now.
  double Worth(NodeId node) const override {
    for (const auto& [id, tenant] : tenants_)
      for (const Page& p : tenant.pages) {
        if (p.node != node) continue;
        int bucket = p.bucket;
        for (; p.what.is_tail && bucket < ReuseEstimate::kNumBuckets - 1; ++bucket)
          if (tenant.clock - p.touched < ReuseEstimate::BucketStart(bucket + 1)) break;
        return tenant.estimate.Worth(p.num_hits, bucket);
      }
    return -1;
  }

 private:
  struct Page {
    CachedNode what;
    NodeId node = kNoNode;  // kNoNode: a ghost
    uint64_t touched = 0;
    int num_hits = 0, bucket = 0;
    uint64_t order = 0;  // when it became evictable; 0: it is not
  };
  struct Tenant {
    ReuseEstimate estimate{512};
    uint64_t clock = 0;
    std::vector<Page> pages;  // in order of touch
  };

  std::pair<Tenant*, Page> Take(NodeId node) {
    for (auto& [id, tenant] : tenants_)
      for (size_t i = 0; i < tenant.pages.size(); ++i)
        if (tenant.pages[i].node == node) {
          const Page page = tenant.pages[i];
          tenant.pages.erase(tenant.pages.begin() + static_cast<ptrdiff_t>(i));
          return {&tenant, page};
        }
    return {};
  }

  void Touch(Tenant& tenant, Page page) {
    page.touched = ++tenant.clock;
    page.bucket = 0;
    tenant.pages.push_back(page);
    if (tenant.clock % 8 != 0) return;
    for (int num_hits = 0; num_hits < 3; ++num_hits)
      for (int bucket = 0; bucket < ReuseEstimate::kNumBuckets - 1; ++bucket)
        for (Page& p : tenant.pages) {
          if (p.what.is_tail || p.num_hits != num_hits || p.bucket != bucket) continue;
          if (tenant.clock - p.touched < ReuseEstimate::BucketStart(bucket + 1)) continue;
          tenant.estimate.CountSurvival(num_hits, bucket);
          ++p.bucket;
          if (p.node != kNoNode && p.order != 0 && p.node != page.node) p.order = ++order_;
        }
    if (tenant.clock % 1024 == 0) tenant.estimate.Update();
  }

  size_t NumGhosts() const {
    size_t count = 0;
    for (const auto& [id, tenant] : tenants_)
      for (const Page& p : tenant.pages) count += p.node == kNoNode;
    return count;
  }

  static bool DropOldestGhost(Tenant& tenant) {
    auto oldest = tenant.pages.end();
    for (auto p = tenant.pages.begin(); p != tenant.pages.end(); ++p)
      if (p->node == kNoNode && (oldest == tenant.pages.end() || p->order < oldest->order))
        oldest = p;
    if (oldest == tenant.pages.end()) return false;
    tenant.pages.erase(oldest);
    return true;
  }

  size_t most_ghosts_;
  std::map<TenantId, Tenant> tenants_;
  uint64_t order_ = 0;
};

// [cache.evict.1], [cache.evict.2], [cache.evict.3]
void CheckAgainst(EvictionPolicyKind kind, Model& model, unsigned seed, int num_steps) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  constexpr NodeId kNumNodes = 24;
  constexpr TenantId kNumTenants = 3;
  std::mt19937 random(seed);
  const auto policy = MakeEvictionPolicy(kind, kNumNodes, 512);
  std::vector<bool> inserted(kNumNodes);
  const auto remove = [&](NodeId node) {
    policy->Remove(node);
    model.Remove(node);
    inserted[node] = false;
  };
  for (int step = 0; step < num_steps; ++step) {
    const NodeId node = random() % kNumNodes;
    if (!inserted[node]) {
      // Half of the keys come again soon, half hardly ever: hits on ghosts, and ghosts that go.
      const uint64_t key = random() % 2 == 0 ? random() % 64 : random();
      const auto tenant = static_cast<TenantId>(std::min(random() % 6, 2ul));
      const CachedNode what = {.key = key, .tenant = tenant, .is_tail = random() % 8 == 0};
      policy->Insert(node, what);
      model.Insert(node, what);
      inserted[node] = true;
    } else if (random() % 4 == 0) {
      policy->Hit(node);
      model.Hit(node);
    } else if (random() % 3 != 0) {
      const bool evictable = random() % 4 != 0;
      policy->SetEvictable(node, evictable);
      model.SetEvictable(node, evictable);
    } else if (random() % 4 == 0) {
      remove(node);
    } else if (const NodeId victim = policy->Victim(random() % kNumTenants); victim != kNoNode) {
      remove(victim);
    }
    for (TenantId tenant = 0; tenant <= kNumTenants; ++tenant)
      ASSERT_EQ(policy->Victim(tenant), model.Victim(tenant)) << "step " << step;
    for (NodeId i = 0; i < kNumNodes; ++i)
      if (inserted[i]) {
        ASSERT_EQ(policy->Worth(i), model.Worth(i)) << "step " << step << ", node " << i;
      }
    const Status status = policy->CheckInvariants();
    ASSERT_TRUE(status.ok()) << status.message();
  }
}

TEST(EvictionModel, LruNamesTheVictimsOfItsModel) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    LruModel model;
    CheckAgainst(EvictionPolicyKind::kLru, model, seed, 3000);
  }
}

TEST(EvictionModel, ReuseNamesTheVictimsOfItsModel) {
  for (unsigned seed = 0; seed < 3; ++seed) {
    ReuseModel model(24);
    CheckAgainst(EvictionPolicyKind::kReuse, model, seed, 20000);
  }
}

}  // namespace
}  // namespace quire
