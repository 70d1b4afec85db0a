#include "cache/node_heaps.h"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <set>
#include <utility>

namespace quire {
namespace {

TEST(NodeHeaps, TheRootIsTheSmallestOfRandomInsertionsAndErasures) {
  constexpr NodeId kNumNodes = 40;
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    NodeHeaps heaps(kNumNodes);
    std::array<NodeId, 3> roots = {kNoNode, kNoNode, kNoNode};
    std::array<std::set<std::pair<uint64_t, NodeId>>, 3> model;
    std::array<int, kNumNodes> heap_of;
    std::array<uint64_t, kNumNodes> key_of = {};
    heap_of.fill(-1);
    for (int step = 0; step < 3000; ++step) {
      const NodeId node = random() % kNumNodes;
      int& heap = heap_of[node];
      if (heap < 0) {
        heap = static_cast<int>(random() % 3);
        key_of[node] = random() % 8;  // many equal ones
        heaps.Insert(node, key_of[node], &roots[heap]);
        model[heap].insert({key_of[node], node});
      } else {
        heaps.Erase(node, &roots[heap]);
        model[heap].erase({key_of[node], node});
        heap = -1;
      }
      for (int i = 0; i < 3; ++i)
        ASSERT_EQ(roots[i], model[i].empty() ? kNoNode : model[i].begin()->second)
            << "seed " << seed << " step " << step;
    }
  }
}

}  // namespace
}  // namespace quire
