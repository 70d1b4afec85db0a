// The free ids of 0 .. num_ids - 1, lowest first.
//
// A bitmap of taken ids with summary levels above it: a summary bit says that the word below is
// full. 64 ids a word, so 2^30 ids need five levels, and each operation touches one word a level.
//
// Not here: what an id names and who holds it (cache/page_pool.h).
#pragma once

#include <cstdint>
#include <vector>

namespace quire {

class FreeIds {
 public:
  // All ids are free.
  explicit FreeIds(uint32_t num_ids);

  uint32_t num_free() const { return num_free_; }
  bool is_free(uint32_t id) const { return (levels_[0][id / 64] >> (id % 64) & 1) == 0; }

  // The lowest free id, now taken. Requires: num_free() > 0.
  uint32_t TakeLowest();

  // Requires: the id is free.
  void Take(uint32_t id);

  // Requires: the id is taken.
  void GiveBack(uint32_t id);

 private:
  // levels_[0] has a bit for each id, levels_[i + 1] one for each word of levels_[i]; the last
  // level is one word. Bits past the end are set, so that they are never found.
  std::vector<std::vector<uint64_t>> levels_;
  uint32_t num_free_;
};

}  // namespace quire
