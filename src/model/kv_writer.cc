#include "model/kv_writer.h"

#include <algorithm>

#include "base/check.h"
#include "codec/kivi.h"

namespace quire {

KvWriter::KvWriter(const AttentionKernels& kernels, size_t max_sequences) : kernels_(kernels) {
  bad_layers_.reserve(max_sequences);
}

void KvWriter::Append(StepPlan& plan, int layer, const StepPlan::Append& append, const float* k,
                      const float* v) {
  const StepPlan::Sequence& sequence = plan.sequences()[append.sequence];
  const AttentionShape& shape = plan.of_layer(layer).shape();
  const KvView& kv = plan.view(layer, append.sequence);
  const uint32_t first = sequence.first_position + append.row_offset;
  const uint32_t end = first + append.num_rows;
  if (end <= sequence.first_append) return;
  const uint32_t begin = std::max(first, sequence.first_append);
  const size_t head_dim_k = shape.layout.head_dim_k, head_dim_v = shape.layout.head_dim_v;
  const size_t k_row = shape.num_kv_heads * head_dim_k, v_row = shape.num_kv_heads * head_dim_v;
  for (uint32_t head = 0; head < shape.num_kv_heads; ++head) {
    const AppendResult result = kernels_.append(
        shape.layout, shape.k_codec, shape.v_codec, plan.index_in_group(layer), head, kv, begin,
        end - begin, k + (begin - first) * k_row + head * head_dim_k, k_row,
        v + (begin - first) * v_row + head * head_dim_v, v_row);
    int none = -1;  // the first layer counts: later ones inherit its trouble
    if (result.non_finite)
      std::atomic_ref<int>(bad_layers_[append.sequence])
          .compare_exchange_strong(none, layer, std::memory_order_relaxed);
    if (result.num_saturated > 0)
      num_saturated_.fetch_add(result.num_saturated, std::memory_order_relaxed);
  }
  if (!shape.has_sealed()) return;
  const uint32_t first_page = std::max(shape.rule.sink_pages, sequence.first_seal);
  plan.ForEachFilled(append, [&](uint32_t page) {
    if (page >= first_page) Seal(shape, plan.index_in_group(layer), kv, page);
  });
}

void KvWriter::Seal(const AttentionShape& shape, uint32_t layer, const KvView& kv, uint32_t page) {
  const KvForm open = {shape.layout, shape.k_codec, shape.v_codec};
  QUIRE_CHECK(kv.pages[page] != nullptr && kv.sealed[page] != nullptr);
  // What is not finite has been reported as it was appended.
  for (uint32_t head = 0; head < shape.num_kv_heads; ++head)
    static_cast<void>(SealChunk(open, shape.sealed,
                                kv.pages[page] + open.layout.ChunkOffset(layer, head),
                                kv.sealed[page] + shape.sealed.layout.ChunkOffset(layer, head)));
}

}  // namespace quire
