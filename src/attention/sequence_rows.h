// SequenceRows: the query rows that one sequence has in a step.
#pragma once

#include <cstdint>

#include "base/kv_view.h"

namespace quire {

// Row first_row + i (of q and out) has position first_position + i. Keys
// [0, first_position + num_rows) are in the pages already.
struct SequenceRows {
  KvView kv;
  uint32_t first_row = 0;
  uint32_t num_rows = 0;
  uint32_t first_position = 0;
};

}  // namespace quire
