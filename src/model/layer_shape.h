// What the header of every architecture says alike: how many layers there are and what heads they
// have. The engine's shape and the planner's model begin with it.
//
// Threads: pure functions. Errors: kInvalidFile names the key, what it holds and what was wanted;
// kUnsupported for layers that differ.
#pragma once

#include "base/status.h"
#include "model/architecture_keys.h"

namespace quire {

// Caps far above any known model; products of two of them fit in an int.
constexpr int kMaxLayers = 1'024;
constexpr int kMaxHeads = 4'096;
constexpr int kMaxHeadDim = 4'096;

struct LayerCounts {
  int in_arrays = 0;   // block_count: arrays of the header have a value for each of these
  int predicting = 0;  // the last of them, which only predict further tokens
  int num_layers() const { return in_arrays - predicting; }
};

StatusOr<LayerCounts> ReadLayerCounts(const ArchitectureKeys& keys);

struct HeadShape {
  int num_q_heads = 0, num_kv_heads = 0;  // the first is a multiple of the second
  int head_dim_k = 0, head_dim_v = 0;
};

// A head dimension without a key of its own is the embedding's part of a head.
StatusOr<HeadShape> ReadHeadShape(const ArchitectureKeys& keys, int embedding_length,
                                  const LayerCounts& layers);

}  // namespace quire
