// PFX-04 and what cache/prefix_nodes.h promises, against sorted maps.
#include "cache/prefix_nodes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "base/allocation_count.h"

namespace quire {
namespace {

using Tokens = std::vector<TokenId>;

void ExpectSound(const PrefixNodes& nodes) {
  const Status status = nodes.CheckInvariants();
  EXPECT_TRUE(status.ok()) << status.message();
}

uint32_t Shared(const Tokens& a, std::span<const TokenId> b) {
  return static_cast<uint32_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

TEST(PrefixNodes, ANodeHasItsTokensParentAndDepth) {
  PrefixNodes nodes(10, 4);
  const NodeId root = nodes.AddRoot();
  EXPECT_TRUE(nodes[root].is_root());
  EXPECT_TRUE(nodes.tokens(root).empty());
  const NodeId a = nodes.AddChild(root, Tokens{1, 2, 3, 4});
  const NodeId b = nodes.AddChild(a, Tokens{5});
  EXPECT_EQ(nodes[a].depth, 0u);
  EXPECT_EQ(nodes[b].depth, 1u);
  EXPECT_EQ(nodes[b].parent, a);
  EXPECT_EQ(nodes[a].num_children, 1u);
  EXPECT_TRUE(std::ranges::equal(nodes.tokens(a), Tokens{1, 2, 3, 4}));
  EXPECT_TRUE(std::ranges::equal(nodes.tokens(b), Tokens{5}));
  EXPECT_EQ(nodes.num_nodes(), 3u);
  ExpectSound(nodes);
}

TEST(PrefixNodes, AChildIsFoundByAllItsTokensAndNoOthers) {
  PrefixNodes nodes(20, 4);
  const NodeId root = nodes.AddRoot(), other = nodes.AddRoot();
  std::map<Tokens, NodeId> known;
  for (const Tokens& tokens :
       {Tokens{1, 2, 3, 4}, Tokens{1, 2, 3, 5}, Tokens{1, 2, 3}, Tokens{1}, Tokens{0, 9}})
    known[tokens] = nodes.AddChild(root, tokens);
  for (const auto& [tokens, id] : known) {
    EXPECT_EQ(nodes.FindChild(root, tokens), id);
    EXPECT_EQ(nodes.FindChild(other, tokens), kNoNode);
  }
  for (const Tokens& tokens : {Tokens{1, 2}, Tokens{1, 2, 3, 6}, Tokens{2}, Tokens{0}, Tokens{9, 0},
                               Tokens{1, 2, 4, 4}, Tokens{}, Tokens{2, 1, 3, 4}})
    EXPECT_EQ(nodes.FindChild(root, tokens), kNoNode);
  std::vector<NodeId> order, want;
  nodes.AppendChildren(root, &order);
  for (const auto& [tokens, id] : known) want.push_back(id);
  EXPECT_EQ(order, want);
}

TEST(PrefixNodes, TheLongestPrefixIsFoundBehindLongerRelatives) {
  PrefixNodes nodes(20, 4);
  const NodeId root = nodes.AddRoot();
  const NodeId one = nodes.AddChild(root, Tokens{1});
  const NodeId three = nodes.AddChild(root, Tokens{1, 1, 1});
  nodes.AddChild(root, Tokens{1, 1, 1, 0});
  nodes.AddChild(root, Tokens{1, 1, 2});
  nodes.AddChild(root, Tokens{1, 0});
  EXPECT_EQ(nodes.FindLongestPrefix(root, Tokens{1, 1, 1, 1}), three);
  EXPECT_EQ(nodes.FindLongestPrefix(root, Tokens{1, 1, 1}), three);
  EXPECT_EQ(nodes.FindLongestPrefix(root, Tokens{1, 1, 9}), one);
  EXPECT_EQ(nodes.FindLongestPrefix(root, Tokens{1, 1}), one);
  EXPECT_EQ(nodes.FindLongestPrefix(root, Tokens{2}), kNoNode);
  EXPECT_EQ(nodes.FindLongestPrefix(root, Tokens{0}), kNoNode);
  EXPECT_EQ(nodes.FindLongestPrefix(root, Tokens{}), kNoNode);
}

TEST(PrefixNodes, WhatIsSharedMostStandsBesideTheText) {
  PrefixNodes nodes(20, 4);
  const NodeId root = nodes.AddRoot();
  EXPECT_EQ(nodes.LongestShared(root, Tokens{1}), 0u);
  nodes.AddChild(root, Tokens{1, 2, 3, 4});
  nodes.AddChild(root, Tokens{1, 2, 7, 0});
  nodes.AddChild(root, Tokens{5});
  EXPECT_EQ(nodes.LongestShared(root, Tokens{1, 2, 3, 9}), 3u);  // after its relative
  EXPECT_EQ(nodes.LongestShared(root, Tokens{1, 2, 6, 9}), 2u);  // before it
  EXPECT_EQ(nodes.LongestShared(root, Tokens{1, 2, 3, 4, 5}), 4u);
  EXPECT_EQ(nodes.LongestShared(root, Tokens{5, 5}), 1u);
  EXPECT_EQ(nodes.LongestShared(root, Tokens{9}), 0u);
  EXPECT_EQ(nodes.LongestShared(root, Tokens{0}), 0u);
}

// PFX-04: lists of tokens that a polynomial hash of base 31 takes for equal.
TEST(PrefixNodes, TokenListsWithOneHashAreTwoChildren) {
  constexpr uint32_t kPage = 16;
  std::mt19937 random(4);
  PrefixNodes nodes(3000, kPage);
  const NodeId root = nodes.AddRoot();
  for (int round = 0; round < 1000; ++round) {
    Tokens tokens(kPage);
    for (TokenId& token : tokens) token = static_cast<TokenId>(100 + random() % 100'000);
    const size_t j = random() % (kPage - 1);
    Tokens twin = tokens;
    twin[j] -= 1;
    twin[j + 1] += 31;
    const NodeId id = nodes.AddChild(root, tokens);
    EXPECT_EQ(nodes.FindChild(root, twin), kNoNode);
    EXPECT_NE(nodes.AddChild(root, twin), id);
    EXPECT_EQ(nodes.FindChild(root, tokens), id);
  }
  ExpectSound(nodes);
}

TEST(PrefixNodes, ItIsFullAtItsMostAndTakesAgainWhatWasRemoved) {
  PrefixNodes nodes(3, 2);
  const NodeId root = nodes.AddRoot();
  const NodeId a = nodes.AddChild(root, Tokens{1});
  nodes.AddChild(root, Tokens{2});
  EXPECT_TRUE(nodes.is_full());
  nodes.Remove(a);
  EXPECT_FALSE(nodes.is_full());
  EXPECT_EQ(nodes.FindChild(root, Tokens{1}), kNoNode);
  EXPECT_EQ(nodes[root].num_children, 1u);
  EXPECT_EQ(nodes.AddChild(root, Tokens{3, 3}), a);
  EXPECT_EQ(nodes.tokens(a).size(), 2u);
  ExpectSound(nodes);
}

// [cache.nodes.1] and [cache.nodes.2], and each lookup against a search through all children.
TEST(PrefixNodes, LookupsEqualASearchThroughAllChildrenAfterRandomOperations) {
  constexpr uint32_t kPage = 4, kNodes = 120;
  std::mt19937 random(7);
  PrefixNodes nodes(kNodes, kPage);
  const auto random_tokens = [&](uint32_t most) {
    Tokens tokens(1 + random() % most);
    for (TokenId& token : tokens) token = static_cast<TokenId>(random() % 3);
    return tokens;
  };
  std::map<NodeId, std::map<Tokens, NodeId>> children;  // by parent
  std::vector<NodeId> all{nodes.AddRoot(), nodes.AddRoot()};
  for (int i = 0; i < 30'000; ++i) {
    const NodeId parent = all[random() % all.size()];
    if (random() % 2 == 0) {
      const Tokens tokens = random_tokens(kPage);
      if (nodes.is_full() || children[parent].contains(tokens)) continue;
      const NodeId id = nodes.AddChild(parent, tokens);
      ASSERT_FALSE(children.contains(id) && !children[id].empty());
      children[parent][tokens] = id;
      all.push_back(id);
    } else if (!nodes[parent].is_root() && children[parent].empty() && random() % 4 != 0) {
      const auto tokens = nodes.tokens(parent);
      children[nodes[parent].parent].erase(Tokens(tokens.begin(), tokens.end()));
      nodes.Remove(parent);
      std::erase(all, parent);
      continue;
    }
    const Tokens text = random_tokens(kPage + 2);
    NodeId exact = kNoNode, longest = kNoNode;
    uint32_t shared = 0;
    for (const auto& [tokens, id] : children[parent]) {  // a shorter one comes first
      const uint32_t same = Shared(tokens, text);
      shared = std::max(shared, same);
      if (same == tokens.size()) longest = id;
      if (same == tokens.size() && tokens.size() == text.size()) exact = id;
    }
    ASSERT_EQ(nodes.FindChild(parent, text), exact) << i;
    ASSERT_EQ(nodes.FindLongestPrefix(parent, text), longest) << i;
    ASSERT_EQ(nodes.LongestShared(parent, text), shared) << i;
    ASSERT_EQ(nodes[parent].num_children, children[parent].size());
    ASSERT_EQ(nodes.num_nodes(), all.size());
    if (i % 50 == 0) ExpectSound(nodes);
  }
}

// Children in order are the worst case of a tree that is not balanced.
TEST(PrefixNodes, ManyChildrenInOrderAreFoundInFewSteps) {
  constexpr uint32_t kChildren = 200'000;
  PrefixNodes nodes(kChildren + 1, 4);
  const NodeId root = nodes.AddRoot();
  for (uint32_t i = 0; i < kChildren; ++i)
    nodes.AddChild(root, Tokens{static_cast<TokenId>(i), 1, 2, 3});  // minutes, were it a list
  for (uint32_t i = 0; i < kChildren; i += 7)
    ASSERT_NE(nodes.FindChild(root, Tokens{static_cast<TokenId>(i), 1, 2, 3}), kNoNode);
  EXPECT_EQ(nodes[root].num_children, kChildren);
}

TEST(PrefixNodes, NoCallAllocates) {
  PrefixNodes nodes(1000, 2);
  const NodeId root = nodes.AddRoot();
  Tokens tokens(2);
  const uint64_t before = AllocationCount();
  NodeId found = 0;
  for (TokenId i = 0; i < 900; ++i) {
    tokens = {i % 30, i};
    nodes.AddChild(root, tokens);
    found ^= nodes.FindChild(root, tokens) ^ nodes.FindLongestPrefix(root, tokens);
    found ^= nodes.LongestShared(root, tokens);
  }
  for (TokenId i = 0; i < 900; ++i) {
    tokens = {i % 30, i};
    nodes.Remove(nodes.FindChild(root, tokens));
  }
  EXPECT_EQ(AllocationCount(), before) << found;
  EXPECT_EQ(nodes.num_nodes(), 1u);
}

}  // namespace
}  // namespace quire
