// RowBlocks: the rows of a step in blocks, so that work over whole rows (norms, rope) can begin
// while products of later rows still run.
//
// A stage computes items of every block, in any way that makes each item belong to one block, and
// then a tail over the block's rows in pieces. Its units come in this order:
//   items of block 0 | items of 1, tails of 0 | items of 2, tails of 1 | ... | tails of the last
// Whoever takes a tail waits for the block's items. They were taken before it and wait for nothing,
// so all goes on; and only at the end, if at all, is there anything to wait for.
//
// Threading: Build by one thread; RunStage by every worker of a job, in the same order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>

#include "base/threads.h"

namespace quire {

class RowBlocks {
 public:
  // Rows of a block: what the products keep in L2 at a time. Rows of a tail: enough to take.
  static constexpr int kMostRows = 96;
  static constexpr int kTailRows = 8;

  void Build(int num_rows) {
    num_rows_ = num_rows;
    num_blocks_ = (num_rows + kMostRows - 1) / kMostRows;
    while (done_.size() < static_cast<size_t>(num_blocks_)) done_.emplace_back();
    for (DoneCounter& done : done_) done.Reset();
  }

  int num_blocks() const { return num_blocks_; }
  int Begin(int block) const { return static_cast<int>(int64_t{num_rows_} * block / num_blocks_); }
  int End(int block) const { return Begin(block + 1); }

  // Runs item(block, i) for i in [0, num_items) of each block, then tail(begin, end) over its rows;
  // returns when all is done. items_before: of the stages of this step that ran before this one,
  // for one block; this stage's are added.
  template <class Item, class Tail>
  void RunStage(ThreadTeam& team, uint32_t num_items, uint32_t& items_before, Item&& item,
                Tail&& tail) {
    const uint32_t num_tails =
        static_cast<uint32_t>((num_rows_ + num_blocks_ - 1) / num_blocks_ + kTailRows - 1) /
        kTailRows;
    const uint32_t per_block = num_items + num_tails;
    const uint32_t total = items_before + num_items;
    const auto last = static_cast<uint32_t>(num_blocks_);
    team.ForEach(last * per_block, [&](uint32_t unit) {
      // Shifted so that a block's items and the tails of the block before it are neighbours.
      uint32_t block = 0, i = unit;
      if (unit >= num_items) {
        block = (unit - num_items) / per_block + 1;
        i = (unit - num_items) % per_block;
      }
      if (block < last && i < num_items) {
        item(static_cast<int>(block), i);
        return done_[block].Add(total);
      }
      if (block < last) i -= num_items;
      const int tailed = static_cast<int>(block) - 1;
      const int begin = Begin(tailed) + static_cast<int>(i) * kTailRows;
      const int end = std::min(begin + kTailRows, End(tailed));
      if (begin >= end) return;
      done_[static_cast<size_t>(tailed)].WaitFor(total);
      tail(begin, end);
    });
    items_before = total;
  }

 private:
  int num_rows_ = 0;
  int num_blocks_ = 0;
  std::deque<DoneCounter> done_;  // of each block; counts on from stage to stage
};

}  // namespace quire
