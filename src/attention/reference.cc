#include "attention/reference.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/half.h"
#include "codec/kivi.h"

namespace quire {
namespace {

float Decode(KvCodec codec, const std::byte* codes, size_t element) {
  if (codec == KvCodec::kF32) {
    float value;
    std::memcpy(&value, codes + element * 4, 4);
    return value;
  }
  uint16_t half;
  std::memcpy(&half, codes + element * 2, 2);
  return HalfToFloat(half);
}

// The chunk that a row of page `query_page` reads, and its form.
struct Chunk {
  Chunk(const AttentionShape& shape, const KvView& kv, uint32_t layer, uint32_t kv_head,
        uint32_t query_page, uint32_t position) {
    const uint32_t page = position / shape.layout.page_size;
    const bool is_open = shape.ReadsOpen(query_page, page);
    form = is_open ? KvForm{shape.layout, shape.k_codec, shape.v_codec} : shape.sealed;
    bytes = (is_open ? kv.pages : kv.sealed)[page] + form.layout.ChunkOffset(layer, kv_head);
    token = position % shape.layout.page_size;
  }
  KvForm form;
  const std::byte* bytes;
  uint32_t token;
};

}  // namespace

float ReferenceK(const AttentionShape& shape, const KvView& kv, uint32_t layer, uint32_t kv_head,
                 uint32_t query_page, uint32_t position, uint32_t channel) {
  const Chunk chunk(shape, kv, layer, kv_head, query_page, position);
  const KvLayout& layout = chunk.form.layout;
  if (IsPageWise(chunk.form.k_codec)) return SealedK(layout, chunk.bytes, chunk.token, channel);
  return Decode(chunk.form.k_codec, chunk.bytes + layout.k_codes_offset,
                KElement(layout, chunk.token, channel));
}

float ReferenceV(const AttentionShape& shape, const KvView& kv, uint32_t layer, uint32_t kv_head,
                 uint32_t query_page, uint32_t position, uint32_t channel) {
  const Chunk chunk(shape, kv, layer, kv_head, query_page, position);
  const KvLayout& layout = chunk.form.layout;
  if (IsPageWise(chunk.form.v_codec)) return SealedV(layout, chunk.bytes, chunk.token, channel);
  return Decode(chunk.form.v_codec, chunk.bytes + layout.v_codes_offset,
                VElement(layout, chunk.token, channel));
}

void ReferenceAttention(const AttentionShape& shape, std::span<const SequenceRows> sequences,
                        uint32_t layer, const float* q, double* out) {
  const uint32_t head_dim_k = shape.layout.head_dim_k, head_dim_v = shape.layout.head_dim_v;
  std::vector<double> weights;
  for (const SequenceRows& rows : sequences)
    for (uint32_t i = 0; i < rows.num_rows; ++i)
      for (uint32_t head = 0; head < shape.num_q_heads; ++head) {
        const uint32_t kv_head = head / shape.group_size();
        const size_t row = (size_t{rows.first_row} + i) * shape.num_q_heads + head;
        const uint32_t position = rows.first_position + i;
        const uint32_t first_key = shape.FirstKey(position);
        const uint32_t page = position / shape.layout.page_size;
        double max = -std::numeric_limits<double>::infinity();
        weights.clear();
        for (uint32_t key = first_key; key <= position; ++key) {
          double dot = 0;
          for (uint32_t d = 0; d < head_dim_k; ++d)
            dot += static_cast<double>(q[row * head_dim_k + d]) *
                   ReferenceK(shape, rows.kv, layer, kv_head, page, key, d);
          weights.push_back(dot * shape.scale);
          max = std::max(max, weights.back());
        }
        double sum = 0;
        for (double& weight : weights) sum += weight = std::exp(weight - max);
        for (uint32_t d = 0; d < head_dim_v; ++d) {
          double value = 0;
          for (size_t j = 0; j < weights.size(); ++j)
            value += weights[j] * ReferenceV(shape, rows.kv, layer, kv_head, page,
                                             first_key + static_cast<uint32_t>(j), d);
          out[row * head_dim_v + d] = weights.empty() ? 0 : value / sum;
        }
      }
}

}  // namespace quire
