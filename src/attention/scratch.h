// ScratchLayout: where an item's working values lie in the scratch of its worker, in floats. Shared
// by the plan, which says how large the scratch must be, and the kernels. Internal to attention/.
//
// A query row is a pair (row, query head of the group), rows first; query rows are worked on in
// tiles of up to kTileRows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "attention/plan.h"
#include "codec/code_units.h"

namespace quire {

// Query rows that one pass over a page serves: 6 rows x 2 vectors fill AVX2's registers.
inline constexpr uint32_t kTileRows = 6;

// Floats from one row of scores to the next: a split and a cache line, so that rows do not fall
// into the same set of the L1 cache.
inline constexpr uint32_t kScoreStride = kSplitTokens + 16;

struct ScratchLayout {
  // Of one layer of `shape`, with at most `num_query_rows` at a time.
  ScratchLayout(const AttentionShape& shape, size_t num_query_rows)
      : q_stride((size_t{shape.layout.head_dim_k} + 15) / 16 * 16),
        o_stride((size_t{shape.layout.head_dim_v} + 15) / 16 * 16) {
    const size_t rows = (num_query_rows + 15) / 16 * 16;
    q = Take(rows * q_stride);
    o = Take(rows * o_stride);
    max = Take(rows);
    sums = Take(rows * 16);
    merged_o = Take(rows * o_stride);
    merged_o_low = Take(rows * o_stride);
    merged_max = Take(rows);
    merged_sum = Take(rows);
    merged_sum_low = Take(rows);
    scores = Take(size_t{kTileRows} * kScoreStride);
    narrow_v = Take(shape.layout.head_dim_v % 16 == 0 ? 0 : size_t{kSplitTokens} * 16);
    if (!shape.has_sealed()) return;
    const size_t tokens =
        shape.layout.page_size < kSplitTokens ? shape.layout.page_size : kSplitTokens;
    const size_t groups = ChannelGroupsOf(shape.layout.head_dim_v);
    if (IsPageWise(shape.sealed.k_codec)) {
      decoded_k = Take(tokens * shape.layout.head_dim_k);
      k_params = Take(2 * q_stride);
    }
    if (IsPageWise(shape.sealed.v_codec)) {
      decoded_v = Take(tokens * o_stride);
      v_params = Take(2 * groups * tokens);
    }
  }

  size_t q_stride;  // head_dim_k rounded up to 16
  size_t o_stride;  // head_dim_v rounded up to 16

  size_t q = 0;               // [query rows, q_stride], scaled
  size_t o = 0;               // [query rows, o_stride], the state of the split in progress
  size_t max = 0;             // [query rows]
  size_t sums = 0;            // [query rows, 16], lanes of d
  size_t merged_o = 0;        // [query rows, o_stride], the splits so far
  size_t merged_o_low = 0;    // [query rows, o_stride], what rounding left of it
  size_t merged_max = 0;      // [query rows]
  size_t merged_sum = 0;      // [query rows]
  size_t merged_sum_low = 0;  // [query rows]
  size_t scores = 0;          // [kTileRows, kScoreStride], scores, then weights
  size_t narrow_v = 0;        // [tokens of a step, 16], the last block of V, if narrower than 16
  // A step of a sealed page, decoded.
  size_t decoded_k = 0;  // [tokens / 16, head_dim_k, 16 tokens]
  size_t decoded_v = 0;  // [o_stride / 16, tokens, 16 channels]
  size_t k_params = 0;   // scales [q_stride], offsets [q_stride]
  size_t v_params = 0;   // scales [groups, tokens], offsets [groups, tokens]
  size_t num_floats = 0;

 private:
  size_t Take(size_t floats) {
    const size_t at = num_floats;
    num_floats += (floats + 15) / 16 * 16;
    return at;
  }
};

}  // namespace quire
