// Tiling: how an item's query rows are cut into tiles of up to kTileRows rows, in blocks that each
// hold the query rows of some neighbouring positions. The cut changes no bit: it may differ from
// one step to the next. Internal to attention/.
#pragma once

#include <cstdint>

#include "attention/scratch.h"

namespace quire {

struct Tiling {
  uint32_t num_blocks;
  uint32_t parts;       // tiles of a block
  uint32_t block_rows;  // item rows (positions) of all blocks together

  // Where all rows see the whole step, positions do not matter: one block.
  static Tiling Whole(uint32_t num_rows, uint32_t group) {
    return {1, (num_rows * group + kTileRows - 1) / kTileRows, num_rows};
  }
  // Else rows of a tile should see the same keys: a position's rows in equal parts (with AVX2
  // tiles of four rows lose 2 % to tiles of six), or, where they are few, those of several
  // positions.
  static Tiling ByPosition(uint32_t num_rows, uint32_t group) {
    if (group >= 4)
      return {num_rows, group % 4 == 0 ? group / 4 : (group + kTileRows - 1) / kTileRows, num_rows};
    const uint32_t positions = kTileRows / group;
    return {(num_rows + positions - 1) / positions, 1, num_rows};
  }
  uint32_t FirstRow(uint32_t block) const {
    return static_cast<uint32_t>(uint64_t{block} * block_rows / num_blocks);
  }
};

}  // namespace quire
