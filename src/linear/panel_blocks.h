// Between the blocks of a GGUF file and the lanes of a panel, for the quantised types.
//
// Plain scalar code; layouts are panel_format.h. Private to this folder.
// Threads: no state; different lanes of a panel may be written at the same time.
#pragma once

#include <cstddef>

#include "linear/panel_format.h"

namespace quire {

// Writes lane `lane` (0..15) of `num_blocks` blocks of 32 columns from one row of a file, which may
// be unaligned. Requires: num_blocks is a multiple of the format's blocks.
void WriteLane(WeightType type, const std::byte* file_row, int num_blocks, int lane,
               std::byte* panel);

// Block `block` of one lane of a panel: element i is scale[i / 16] * code[i] + min[i / 16], where
// the product is exact.
struct LaneBlock {
  float scale[2];
  float min[2];
  int code[kPanelBlock];
};
LaneBlock ReadLane(WeightType type, const std::byte* panel, int block, int lane);

}  // namespace quire
