#include "attention/test_pages.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>

#include "base/check.h"
#include "codec/kivi.h"

namespace quire {
namespace {

constexpr size_t kGuardBytes = 64;  // what base/kv_view.h lets a kernel read behind a page

float* AlignedTo64(std::vector<float>& floats) {
  void* at = floats.data();
  size_t space = floats.size() * sizeof(float);
  return static_cast<float*>(std::align(64, 1, at, space));
}

}  // namespace

AttentionShape MakeTestShape(const TestCase& test) {
  const auto forms = MakeKvForms({.page_size = test.page_size,
                                  .num_layers = test.num_layers,
                                  .num_kv_heads = test.num_kv_heads,
                                  .head_dim_k = test.head_dim_k,
                                  .head_dim_v = test.head_dim_v},
                                 {.k_codec = test.k_codec,
                                  .v_codec = test.v_codec,
                                  .sink_pages = test.sink_pages,
                                  .recent_pages = test.recent_pages},
                                 test.window);
  QUIRE_CHECK(forms.ok());
  return {.layout = forms->open.layout,
          .k_codec = forms->open.k_codec,
          .v_codec = forms->open.v_codec,
          .num_q_heads = test.num_kv_heads * test.group_size,
          .num_kv_heads = test.num_kv_heads,
          .scale = 1.0f / std::sqrt(static_cast<float>(test.head_dim_k)),
          .window = test.window,
          .sealed = forms->sealed,
          .rule = forms->rule};
}

std::vector<float> RandomValues(std::mt19937& rng, size_t n, float size) {
  std::vector<float> values(n);
  for (float& value : values) {  // four uniform bytes: deviation sqrt(4 / 12) * 256
    const uint32_t bits = static_cast<uint32_t>(rng());
    const uint32_t sum = (bits & 255) + (bits >> 8 & 255) + (bits >> 16 & 255) + (bits >> 24);
    value = (static_cast<float>(sum) - 510.0f) * (size / 147.8f);
  }
  return values;
}

// 0xFF everywhere is a NaN in f32 and in f16.
TestPages::Pages::Pages(size_t page_bytes, size_t num_used, std::mt19937& rng)
    : stride((page_bytes + kGuardBytes + 63) / 64 * 64) {
  const size_t total = page_bytes == 0 ? 0 : num_used + num_used / 4 + 2;
  num_bytes = total * stride;
  memory.assign(num_bytes + 64, std::byte{0xFF});
  void* at = memory.data();
  size_t space = memory.size();
  first = static_cast<std::byte*>(std::align(64, num_bytes, at, space));
  order.resize(total);
  std::iota(order.begin(), order.end(), size_t{0});
  std::shuffle(order.begin(), order.end(), rng);
}

namespace {

size_t NumPages(uint32_t length, uint32_t page_size) {
  return (length + page_size - 1) / page_size;
}
size_t NumPages(std::span<const uint32_t> lengths, uint32_t page_size) {
  size_t num = 0;
  for (uint32_t length : lengths) num += NumPages(length, page_size);
  return num;
}

}  // namespace

TestPages::TestPages(const AttentionShape& shape, std::span<const uint32_t> lengths,
                     std::mt19937& rng)
    : shape_(shape),
      open_pages_(shape.layout.page_bytes(), NumPages(lengths, shape.layout.page_size), rng),
      sealed_pages_(shape.sealed.layout.page_bytes(), NumPages(lengths, shape.layout.page_size),
                    rng) {
  for (uint32_t length : lengths) {
    const size_t num_pages = NumPages(length, shape.layout.page_size);
    auto& table = open_.emplace_back();
    for (size_t i = 0; i < num_pages; ++i) table.push_back(open_pages_.Take());
    sealed_.emplace_back(num_pages, nullptr);
  }
}

void TestPages::Share(size_t from, size_t to, uint32_t num_pages) {
  QUIRE_CHECK(num_pages <= std::min(open_[from].size(), open_[to].size()));
  std::copy_n(open_[from].begin(), num_pages, open_[to].begin());
  std::copy_n(sealed_[from].begin(), num_pages, sealed_[to].begin());
}

void TestPages::Seal(size_t sequence, uint32_t layer, uint32_t page) {
  std::byte*& sealed = sealed_[sequence][page];
  if (sealed == nullptr) sealed = sealed_pages_.Take();
  const KvForm from = {shape_.layout, shape_.k_codec, shape_.v_codec};
  for (uint32_t head = 0; head < shape_.num_kv_heads; ++head)
    (void)SealChunk(from, shape_.sealed,
                    open_[sequence][page] + shape_.layout.ChunkOffset(layer, head),
                    sealed + shape_.sealed.layout.ChunkOffset(layer, head));
}

void TestPages::Forget(size_t sequence, uint32_t position) {
  const uint32_t page_size = shape_.layout.page_size, own = position / page_size;
  for (uint32_t page = 0; page < own; ++page) {
    const bool is_visible = (page + 1) * page_size > shape_.FirstKey(position);
    if (!is_visible || !shape_.ReadsOpen(own, page)) open_[sequence][page] = nullptr;
    if (!is_visible) sealed_[sequence][page] = nullptr;
  }
}

AppendResult TestPages::Append(const AttentionKernels& kernels, size_t sequence, uint32_t layer,
                               uint32_t position, uint32_t num_tokens, const float* k,
                               const float* v) {
  AppendResult all;
  const KvLayout& layout = shape_.layout;
  for (uint32_t head = 0; head < shape_.num_kv_heads; ++head) {
    const AppendResult one = kernels.append(
        layout, shape_.k_codec, shape_.v_codec, layer, head, view(sequence), position, num_tokens,
        k + head * layout.head_dim_k, size_t{shape_.num_kv_heads} * layout.head_dim_k,
        v + head * layout.head_dim_v, size_t{shape_.num_kv_heads} * layout.head_dim_v);
    all.non_finite = all.non_finite || one.non_finite;
    all.num_saturated += one.num_saturated;
  }
  const uint32_t first = position / layout.page_size;
  const uint32_t end = (position + num_tokens) / layout.page_size;
  if (shape_.has_sealed())
    for (uint32_t page = std::max(first, shape_.rule.sink_pages); page < end; ++page)
      Seal(sequence, layer, page);
  return all;
}

AttentionRun RunAttention(const AttentionKernels& kernels, const AttentionShape& shape,
                          std::span<const SequenceRows> sequences, uint32_t layer,
                          std::span<const float> q, int num_threads, Cascade cascade) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  AttentionPlan plan;
  plan.Build(shape, sequences, num_threads, cascade);
  AttentionRun run;
  run.num_items = plan.num_items();
  run.num_merge_items = plan.num_merge_items();
  run.num_runs = static_cast<uint32_t>(plan.run_items().size()) / shape.num_kv_heads;
  const size_t num_rows = q.size() / shape.num_q_heads / shape.layout.head_dim_k;
  run.out.assign(num_rows * shape.num_q_heads * shape.layout.head_dim_v, kNan);
  std::vector<float> workspace(plan.workspace_floats() + 16, kNan);
  std::vector<float> scratch(plan.scratch_floats() + 16);
  std::vector<uint32_t> left_of_run(plan.run_items().begin(), plan.run_items().end());
  std::vector<bool> is_done(plan.num_items());
  std::vector<uint32_t> order(plan.num_items());
  std::iota(order.begin(), order.end(), 0u);
  std::shuffle(order.begin(), order.end(), std::mt19937(plan.num_items()));
  for (uint32_t num_done = 0; num_done < plan.num_items();)
    for (uint32_t i : order) {
      const AttentionItem& item = plan.items()[i];
      if (is_done[i] || (item.after != AttentionItem::kNone && left_of_run[item.after] > 0))
        continue;
      std::fill(scratch.begin(), scratch.end(), kNan);
      run.counters.chunks_read += kernels
                                      .run_item(plan, i, layer, q.data(), run.out.data(),
                                                AlignedTo64(workspace), AlignedTo64(scratch))
                                      .chunks_read;
      if (item.run != AttentionItem::kNone) --left_of_run[item.run];
      is_done[i] = true;
      ++num_done;
    }
  for (uint32_t i = 0; i < plan.num_merge_items(); ++i)
    kernels.merge_item(plan, i, AlignedTo64(workspace), run.out.data(), AlignedTo64(scratch));
  return run;
}

}  // namespace quire
