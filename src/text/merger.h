// Merger: joins neighbours, again and again the pair with the lowest rank (the leftmost on ties),
// until no pair has a rank. BPE and SPM differ only in what a rank is.
//
// Short pieces are scanned; long ones keep their pairs in a heap and their units in a linked list:
// n log n, so that one word of a megabyte costs what a megabyte of words does.
//
// Threads: not thread-safe; holds working memory that a caller keeps for many pieces.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace quire {

struct Unit {
  uint32_t begin = 0;  // byte offset in the text at hand
  uint32_t length = 0;
  int32_t symbol = 0;  // what the encoder knows the unit by
};

struct Merge {
  static constexpr uint32_t kNoRank = UINT32_MAX;
  uint32_t rank = kNoRank;
  int32_t symbol = 0;  // of the joined unit
};

class Merger {
 public:
  // Merges *units, which lie side by side, in place. `find` is called as
  // Merge find(const Unit& left, const Unit& right). Requires: fewer than 2^32 units.
  template <class Find>
  void Run(const Find& find, std::vector<Unit>* units) {
    if (units->size() <= kMaxScanned) {
      Scan(find, units);
    } else {
      UseHeap(find, units);
    }
  }

 private:
  // Where a scan for each merge (n^2 small steps) costs as much as the heap: measured with gpt-2's
  // vocabulary on words of random letters.
  static constexpr size_t kMaxScanned = 48;
  static constexpr uint32_t kEnd = UINT32_MAX;

  static void Join(const Unit& right, int32_t symbol, Unit* left) {
    left->length += right.length;
    left->symbol = symbol;
  }

  template <class Find>
  void Scan(const Find& find, std::vector<Unit>* units) {
    merges_.clear();  // merges_[i]: of units i and i + 1
    for (size_t i = 0; i + 1 < units->size(); ++i) {
      merges_.push_back(find((*units)[i], (*units)[i + 1]));
    }
    while (!merges_.empty()) {
      const auto best =
          std::min_element(merges_.begin(), merges_.end(),
                           [](const Merge& a, const Merge& b) { return a.rank < b.rank; });
      if (best->rank == Merge::kNoRank) return;
      const size_t i = static_cast<size_t>(best - merges_.begin());
      Join((*units)[i + 1], best->symbol, &(*units)[i]);
      units->erase(units->begin() + static_cast<ptrdiff_t>(i) + 1);
      merges_.erase(best);
      if (i > 0) merges_[i - 1] = find((*units)[i - 1], (*units)[i]);
      if (i < merges_.size()) merges_[i] = find((*units)[i], (*units)[i + 1]);
    }
  }

  template <class Find>
  void UseHeap(const Find& find, std::vector<Unit>* units) {
    std::vector<Unit>& unit = *units;
    const auto count = static_cast<uint32_t>(unit.size());
    merges_.assign(count, Merge());  // of the pair that starts at a unit
    next_.resize(count);
    previous_.resize(count);
    heap_.clear();
    for (uint32_t i = 0; i < count; ++i) {
      next_[i] = i + 1 < count ? i + 1 : kEnd;
      previous_[i] = i > 0 ? i - 1 : kEnd;
      if (i + 1 == count) break;
      merges_[i] = find(unit[i], unit[i + 1]);
      if (merges_[i].rank != Merge::kNoRank) heap_.push_back(Key(i));
    }
    std::make_heap(heap_.begin(), heap_.end(), std::greater<>());

    const auto update = [&](uint32_t i) {
      merges_[i] = next_[i] == kEnd ? Merge() : find(unit[i], unit[next_[i]]);
      if (merges_[i].rank == Merge::kNoRank) return;
      heap_.push_back(Key(i));
      std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
    };
    while (!heap_.empty()) {
      const uint64_t key = heap_.front();
      std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
      heap_.pop_back();
      const auto i = static_cast<uint32_t>(key);
      // Stale if the pair was merged or changed since: a swallowed unit has no rank.
      if (merges_[i].rank == Merge::kNoRank || Key(i) != key) continue;
      const uint32_t right = next_[i];
      Join(unit[right], merges_[i].symbol, &unit[i]);
      unit[right].length = 0;
      merges_[right] = Merge();
      next_[i] = next_[right];
      if (next_[i] != kEnd) previous_[next_[i]] = i;
      if (previous_[i] != kEnd) update(previous_[i]);
      update(i);
    }
    std::erase_if(unit, [](const Unit& u) { return u.length == 0; });
  }

  // Orders by rank, then by place.
  uint64_t Key(uint32_t i) const { return uint64_t{merges_[i].rank} << 32 | i; }

  std::vector<Merge> merges_;
  std::vector<uint32_t> next_;
  std::vector<uint32_t> previous_;
  std::vector<uint64_t> heap_;
};

}  // namespace quire
