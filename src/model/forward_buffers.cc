#include "model/forward_buffers.h"

#include <algorithm>

namespace quire {

StatusOr<ForwardBuffers> ForwardBuffers::Create(const ModelShape& shape, uint32_t max_rows) {
  ForwardBuffers buffers;
  const int angles = shape.rope().dimension_count / 2 * static_cast<int>(shape.ropes.size());
  const struct {
    float** place;
    int num_cols;
  } parts[] = {
      {&buffers.hidden, shape.embedding_length},
      {&buffers.normed, shape.embedding_length},
      {&buffers.q, shape.q_rows()},
      {&buffers.k, shape.k_rows()},
      {&buffers.v, shape.v_rows()},
      {&buffers.attended, shape.attention_columns()},
      {&buffers.gate, shape.feed_forward_length},
      {&buffers.up, shape.feed_forward_length},
      {&buffers.cos, angles},
      {&buffers.sin, angles},
  };
  // A vector load of 16 values may start at the last one.
  constexpr size_t kSlack = 16;
  const auto floats = [&](int num_cols) {
    return (size_t{max_rows} * static_cast<size_t>(num_cols) + kSlack + 15) / 16 * 16;
  };
  size_t total = 0;
  for (const auto& part : parts) total += floats(part.num_cols);
  QUIRE_ASSIGN_OR_RETURN(buffers.memory, AnonymousMemory::Reserve(total * sizeof(float)));
  auto* next = reinterpret_cast<float*>(buffers.memory.data());
  for (const auto& part : parts) {
    *part.place = next;
    next += floats(part.num_cols);
  }
  buffers.normed_int8 = Int8Buffer(static_cast<int>(max_rows), shape.embedding_length);
  buffers.branch_int8 = Int8Buffer(static_cast<int>(max_rows),
                                   std::max(shape.attention_columns(), shape.feed_forward_length));
  return buffers;
}

}  // namespace quire
