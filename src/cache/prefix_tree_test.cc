// PFX-11, WIN-06 and what cache/prefix_tree.h promises: what goes, in which order, and what stays.
#include "cache/prefix_tree.h"

#include <algorithm>

#include "cache/test_cache.h"

namespace quire {
namespace {

// Nodes with pages made by hand: tree and pool alone.
struct Tree {
  explicit Tree(std::vector<KvGroupShape> groups, uint32_t num_units = 64)
      : shape{.page_size = 4, .groups = std::move(groups)},
        pool(PagePool::Create(
                 {.page_bytes = PageBytesByClass(shape), .budget_bytes = num_units * kUnit})
                 .value()),
        tree(shape, pool.get(), EvictionPolicyKind::kLru, 4),
        root(tree.root(tree.AddNamespace(0).value())) {}
  ~Tree() { Check(); }
  // A node with a cached page of each group.
  NodeId Add(NodeId parent, const Tokens& tokens) {
    tree.Lock(parent);
    const NodeId id = tree.FindOrAdd(parent, tokens);
    if (id != kNoNode)
      for (uint32_t g = 0; g < shape.num_groups(); ++g)
        if (!tree.has_page(id, OpenClass(g))) tree.KeepPage(id, pool->Take(OpenClass(g)));
    tree.Unlock(parent);
    return id;
  }
  std::vector<NodeId> Chain(NodeId parent, uint32_t num_pages, TokenId kind = 0) {
    std::vector<NodeId> nodes;
    for (uint32_t i = 0; i < num_pages; ++i) {
      parent = Add(parent, Text(4, kind * 100 + static_cast<TokenId>(i) + 1));
      nodes.push_back(parent);
    }
    return nodes;
  }
  // [node]: a letter a group, a dot for a page that is gone; "-": the node is gone.
  std::string Pages(const std::vector<NodeId>& nodes) const {
    std::string text;
    for (const NodeId id : nodes) {
      if (tree.nodes()[id].is_free) {
        text += "- ";
        continue;
      }
      for (uint32_t g = 0; g < shape.num_groups(); ++g)
        text += !tree.has_page(id, OpenClass(g)) ? '.' : shape.groups[g].window == 0 ? 'F' : 'w';
      text += ' ';
    }
    return text;
  }
  void Evict(int count) {
    for (int i = 0; i < count; ++i) {
      EXPECT_TRUE(tree.EvictOne());
      Check();
    }
  }
  void Check() const {
    for (const Status& status : {pool->CheckInvariants(), tree.CheckInvariants()})
      EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(pool->num_failures(), 0u);
  }
  KvShape shape;
  std::unique_ptr<PagePool> pool;
  PrefixTree tree;
  NodeId root;
};

TEST(PrefixTree, LeavesGoFirstAndLockedPathsStay) {
  Tree t({Full()});
  const auto a = t.Chain(t.root, 3), b = t.Chain(a[0], 2, 1);
  t.tree.Lock(b[0]);
  EXPECT_TRUE(t.tree.is_locked(b[0]));
  PageRef used = t.tree.Use(a[0], 0), also = t.tree.Use(b[0], 0);  // as a sequence does
  t.Evict(1);
  EXPECT_EQ(t.Pages(a), "F F - ");
  t.Evict(2);
  EXPECT_EQ(t.Pages(a), "F - - ");
  EXPECT_EQ(t.Pages(b), "F - ");
  EXPECT_FALSE(t.tree.EvictOne());
  used.Reset();
  also.Reset();
  t.tree.Unlock(b[0]);
  t.Evict(2);
  EXPECT_EQ(t.pool->free_bytes(), t.pool->budget_bytes());
}

TEST(PrefixTree, ATailGoesBeforeFullPages) {
  Tree t({Full()});
  const auto a = t.Chain(t.root, 2);
  const NodeId tail = t.Add(t.root, Text(3, 50));
  t.Evict(1);
  EXPECT_TRUE(t.tree.nodes()[tail].is_free);
  EXPECT_EQ(t.Pages(a), "F F ");
}

TEST(PrefixTree, AHitMovesANodeBehindOthers) {
  Tree t({Full()});
  const NodeId a = t.Add(t.root, Text(4, 1)), b = t.Add(t.root, Text(4, 2));
  t.tree.Hit(a);
  t.Evict(1);
  EXPECT_TRUE(t.tree.nodes()[b].is_free);
  EXPECT_FALSE(t.tree.nodes()[a].is_free);
  EXPECT_TRUE(t.tree.WasEvicted(t.root, Text(4, 2)));
  EXPECT_FALSE(t.tree.WasEvicted(t.root, Text(4, 1)));
}

// The order 1, 2, 3 of the header. A window of 4 at page 4: a mark holds its node and one before.
TEST(PrefixTree, SecondaryPagesAtNoMarkGoThenNodesThenSecondaryPagesAtMarks) {
  Tree t({Full(), Window(4)});
  const auto a = t.Chain(t.root, 5);
  t.tree.MarkEnd(a[4]);
  t.tree.Lock(a[4]);  // nodes can't go
  std::vector<PageRef> used;
  for (const NodeId id : a) used.push_back(t.tree.Use(id, 0));
  t.Evict(1);
  EXPECT_EQ(t.Pages(a), "F. Fw Fw Fw Fw ") << "the one that was used longest ago";
  t.Evict(2);
  EXPECT_EQ(t.Pages(a), "F. F. F. Fw Fw ");
  const auto b = t.Chain(t.root, 1, 1);
  t.Evict(1);
  EXPECT_EQ(t.Pages(b), "F. ") << "its window page stands at no mark";
  t.Evict(1);
  EXPECT_EQ(t.Pages(b), "- ") << "a node before marked pages";
  EXPECT_EQ(t.Pages(a), "F. F. F. Fw Fw ");
  t.Evict(2);
  EXPECT_EQ(t.Pages(a), "F. F. F. F. F. ");
  EXPECT_EQ(t.tree.num_evicted_nodes(), 1u);
  EXPECT_EQ(t.tree.num_evicted_secondary_pages(), 6u);
  EXPECT_FALSE(t.tree.EvictOne());
  used.clear();
  t.tree.Unlock(a[4]);
}

TEST(PrefixTree, ABranchIsAMarkWhileItIsOne) {
  Tree t({Full(), Window(4)});
  const auto a = t.Chain(t.root, 4);
  const NodeId b = t.Add(a[1], Text(4, 77));
  t.tree.Lock(b);
  t.tree.Lock(a[3]);
  std::vector<PageRef> used;
  for (const NodeId id : {a[0], a[1], a[2], a[3], b}) used.push_back(t.tree.Use(id, 0));
  t.Evict(3);
  EXPECT_EQ(t.Pages(a), "Fw Fw F. F. ");
  EXPECT_EQ(t.Pages({b}), "F. ");
  used.pop_back();
  t.tree.Unlock(b);
  t.tree.Drop(b);
  t.Check();
  EXPECT_TRUE(t.tree.nodes()[b].is_free);
  const auto later = t.Chain(t.root, 1, 5);
  t.Evict(2);
  EXPECT_EQ(t.Pages(a), "F. F. F. F. ") << "no branch any more: first again";
  EXPECT_EQ(t.Pages(later), "Fw ");
  used.clear();
  t.tree.Unlock(a[3]);
}

TEST(PrefixTree, AnEndIsNoMarkAnyMoreWhenTheTextGoesOn) {
  Tree t({Full(), Window(4)});
  const auto a = t.Chain(t.root, 2);
  t.tree.MarkEnd(a[1]);
  const auto b = t.Chain(a[1], 2, 1);
  t.tree.MarkEnd(b[1]);
  t.tree.MarkEnd(a[1]);  // it goes on: no end
  t.Evict(2);
  EXPECT_EQ(t.Pages(a), "F. F. ");
  EXPECT_EQ(t.Pages(b), "Fw Fw ");
}

TEST(PrefixTree, ASecondaryPageThatIsUsedIsSkippedAndThenLast) {
  Tree t({Full(), Window(4)});
  const auto a = t.Chain(t.root, 3);
  PageRef window = t.tree.Use(a[0], OpenClass(1));
  t.Evict(1);
  EXPECT_EQ(t.Pages(a), "Fw F. Fw ");
  window.Reset();
  t.Evict(1);
  EXPECT_EQ(t.Pages(a), "Fw F. F. ") << "a[0] was used last";
  t.Evict(1);
  EXPECT_EQ(t.Pages(a), "F. F. F. ");
}

TEST(PrefixTree, ASecondaryPageThatIsUsedAgainWhileItWaitsGoesLast) {
  Tree t({Full(), Window(4)});
  const auto a = t.Chain(t.root, 3);
  t.tree.Use(a[0], OpenClass(1)).Reset();
  t.Evict(1);
  EXPECT_EQ(t.Pages(a), "Fw F. Fw ");
}

TEST(PrefixTree, APinHoldsWhatAMatchOfItsPrefixReads) {
  Tree t({Full(), Window(4)});
  const auto a = t.Chain(t.root, 6);
  t.tree.Pin(a[4]);
  t.Check();
  EXPECT_EQ(t.pool->pinned_bytes(), (5 + 2) * kUnit);
  while (t.tree.EvictOne()) t.Check();
  EXPECT_EQ(t.Pages(a), "F. F. F. Fw Fw - ");
  t.tree.Unpin(a[4]);
  EXPECT_EQ(t.pool->pinned_bytes(), 0u);
  t.Evict(1);
  EXPECT_EQ(t.pool->evictable_bytes(), t.pool->cached_bytes());
  while (t.tree.EvictOne()) t.Check();
  EXPECT_EQ(t.pool->cached_bytes(), 0u);
}

TEST(PrefixTree, ADeeperPinTakesNothingFromAnother) {
  Tree t({Full(), Window(4)});
  const auto a = t.Chain(t.root, 6);
  t.tree.Pin(a[1]);
  t.tree.Pin(a[5]);
  while (t.tree.EvictOne()) t.Check();
  EXPECT_EQ(t.Pages(a), "Fw Fw F. F. Fw Fw ");
  t.tree.Unpin(a[5]);
  while (t.tree.EvictOne()) t.Check();
  EXPECT_EQ(t.Pages(a), "Fw Fw - - - - ");
  t.tree.Unpin(a[1]);
  while (t.tree.EvictOne()) t.Check();
  EXPECT_EQ(t.pool->cached_bytes(), 0u);
}

TEST(PrefixTree, APageThatComesUnderAPinIsPinned) {
  Tree t({Full(), Window(4)});
  const auto a = t.Chain(t.root, 2);
  t.Evict(2);
  ASSERT_EQ(t.Pages(a), "F. F. ");
  t.tree.Pin(a[1]);
  EXPECT_EQ(t.Add(t.root, Text(4, 1)), a[0]);  // computed again
  EXPECT_EQ(t.Pages(a), "Fw F. ");
  EXPECT_EQ(t.pool->pinned_bytes(), 3 * kUnit);
  EXPECT_FALSE(t.tree.EvictOne());
  t.tree.Unpin(a[1]);
  t.Evict(1);
}

TEST(PrefixTree, DroppedNodesAreNotFoundAndGoWithTheirLastLock) {
  Tree t({Full()});
  const auto a = t.Chain(t.root, 4);
  t.tree.Lock(a[2]);
  std::vector<PageRef> used;
  for (uint32_t i = 0; i < 3; ++i) used.push_back(t.tree.Use(a[i], 0));
  t.tree.Drop(a[1]);
  EXPECT_EQ(t.Pages(a), "F F F - ");
  EXPECT_EQ(t.tree.FindChild(a[0], Text(4, 2)), kNoNode);
  EXPECT_NE(t.tree.FindChild(t.root, Text(4, 1)), kNoNode);
  EXPECT_TRUE(t.tree.is_dropped(a[2]));
  const NodeId below = t.Add(a[2], Text(4, 9));  // what runs goes on
  t.tree.Lock(below);
  used.push_back(t.tree.Use(below, 0));
  EXPECT_TRUE(t.tree.is_dropped(below));
  t.tree.Unlock(a[2]);
  EXPECT_EQ(t.Pages({a[0], a[1], a[2], below}), "F F F F ");
  used.clear();
  t.tree.Unlock(below);
  EXPECT_EQ(t.Pages({a[0], a[1], a[2], below}), "F - - - ");
  EXPECT_EQ(t.pool->cached_bytes(), kUnit);
}

TEST(PrefixTree, ADroppedNodeThatIsComputedAgainIsFound) {
  Tree t({Full()});
  const auto a = t.Chain(t.root, 2);
  t.tree.Lock(a[1]);
  PageRef first = t.tree.Use(a[0], 0), second = t.tree.Use(a[1], 0);
  t.tree.Drop(a[0]);
  EXPECT_EQ(t.tree.FindChild(t.root, Text(4, 1)), kNoNode);
  EXPECT_EQ(t.Add(t.root, Text(4, 1)), a[0]);
  EXPECT_EQ(t.tree.FindChild(t.root, Text(4, 1)), a[0]);
  EXPECT_EQ(t.tree.FindChild(a[0], Text(4, 2)), kNoNode) << "not what is below it";
  first.Reset();
  second.Reset();
  t.tree.Unlock(a[1]);
  EXPECT_EQ(t.Pages(a), "F - ");
}

TEST(PrefixTree, ATenantsBytesAreThoseOfItsPages) {
  Tree t({Full(), Window(4)});
  const NodeId other = t.tree.root(t.tree.AddNamespace(1).value());
  const auto a = t.Chain(t.root, 3), b = t.Chain(other, 1);
  EXPECT_EQ(t.tree.tenant_bytes(0), 6 * kUnit);
  EXPECT_EQ(t.tree.tenant_bytes(1), 2 * kUnit);
  t.Evict(1);
  EXPECT_EQ(t.tree.tenant_bytes(0), 5 * kUnit);
  t.tree.Drop(other);
  EXPECT_EQ(t.tree.tenant_bytes(1), 0u);
  t.tree.Drop(t.root);
  EXPECT_EQ(t.tree.tenant_bytes(0), 0u);
  EXPECT_EQ(t.pool->cached_bytes(), 0u);
}

TEST(PrefixTree, NamespacesAreBounded) {
  Tree t({Full()});
  while (t.tree.AddNamespace(0).ok()) {
  }
  EXPECT_EQ(t.tree.AddNamespace(0).status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(t.tree.nodes().num_nodes(), 4u);
}

// PFX-11: 20 pages; a prefix of 10 used every fifth time, others of 5 tokens.
TEST(PrefixTree, HalfFilledPagesDoNotPushOutAHotPrefix) {
  for (const auto policy : {EvictionPolicyKind::kLru, EvictionPolicyKind::kReuse}) {
    TestCache c({Full()}, 20, policy);
    const Tokens hot = Text(160);
    c.Run(hot);
    for (TokenId i = 1; i <= 200; ++i) {
      c.Run(Text(5, i));
      if (i % 5 != 0) continue;
      EXPECT_GE(c.Run(hot + Text(3, 500 + i)), 160u) << i;
    }
  }
}

// A model with window groups alone: long texts leave nodes without pages, which must not fill the
// tree for good.
TEST(PrefixTree, NodesWithoutPagesMakeRoomForNewOnes) {
  TestCache c({Window(8)}, 4, EvictionPolicyKind::kLru, 4);
  const uint32_t max_nodes = c.cache->tree().nodes().max_nodes();
  const uint32_t length = 4 * max_nodes + 40;
  SequencePages pages = c.cache->NewSequence(c.ns, length);
  c.Compute(pages, Text(length), length, 4);  // more pages than the tree has nodes
  EXPECT_EQ(c.cache->tree().nodes().num_nodes(), max_nodes - 6) << "the roots to come have room";
  EXPECT_TRUE(c.cache->Namespace({.salt = "new"}).ok());
  pages.Release();
  for (TokenId kind = 1; kind < 4; ++kind) {
    c.Run(Text(8, kind));
    EXPECT_EQ(c.Find(Text(9, kind)).length, 8u) << kind;
  }
  EXPECT_TRUE(c.cache->MakeRoom(4 * kUnit));
  EXPECT_EQ(c.cache->tree().nodes().num_nodes(), 3u) << "no node without a page is left";
}

}  // namespace
}  // namespace quire
