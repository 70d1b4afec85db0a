// TestPages: pages for tests of the attention kernels. They lie in shuffled order with holes
// between them, and every byte that nothing has written is part of a NaN. With page-wise codecs a
// page is sealed when it is full, unless it is a sink page.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "attention/kernels.h"
#include "base/kv_view.h"

namespace quire {

struct TestCase {
  uint32_t page_size = 64;
  uint32_t num_layers = 1;
  uint32_t num_kv_heads = 1;
  uint32_t group_size = 1;
  uint32_t head_dim_k = 64;
  uint32_t head_dim_v = 64;
  KvCodec k_codec = KvCodec::kF16;
  KvCodec v_codec = KvCodec::kF16;
  uint32_t window = 0;
  uint32_t sink_pages = 0;
  uint32_t recent_pages = 0;
};

AttentionShape MakeTestShape(const TestCase& test);

// n values, bell-shaped, with mean 0 and deviation `size`; the largest are 3.5 times that.
std::vector<float> RandomValues(std::mt19937& rng, size_t n, float size = 1.0f);

class TestPages {
 public:
  // Room for sequences of these many tokens.
  TestPages(const AttentionShape& shape, std::span<const uint32_t> lengths, std::mt19937& rng);

  KvView view(size_t sequence) const {
    return {.pages = open_[sequence].data(),
            .sealed = shape_.has_sealed() ? sealed_[sequence].data() : nullptr,
            .num_pages = static_cast<uint32_t>(open_[sequence].size())};
  }

  // Sequence `to` has the first `num_pages` pages of `from` from here on.
  void Share(size_t from, size_t to, uint32_t num_pages);

  // Appends K and V [num_tokens, num_kv_heads, head_dim] at `position` of one layer.
  AppendResult Append(const AttentionKernels& kernels, size_t sequence, uint32_t layer,
                      uint32_t position, uint32_t num_tokens, const float* k, const float* v);

  // Takes from a sequence's tables what no row from `position` on may read.
  void Forget(size_t sequence, uint32_t position);

  // Of the pages in the open form.
  std::span<const std::byte> bytes() const { return {open_pages_.first, open_pages_.num_bytes}; }

 private:
  using Table = std::vector<std::byte*>;

  // Pages of one form.
  struct Pages {
    Pages(size_t page_bytes, size_t num_used, std::mt19937& rng);
    std::byte* Take() { return first + order[next++] * stride; }

    size_t stride;
    std::vector<std::byte> memory;
    std::byte* first = nullptr;
    size_t num_bytes = 0;
    std::vector<size_t> order;
    size_t next = 0;
  };

  void Seal(size_t sequence, uint32_t layer, uint32_t page);

  AttentionShape shape_;
  Pages open_pages_, sealed_pages_;
  std::vector<Table> open_, sealed_;  // of each sequence
};

// Everything a run gave, with the plan that it followed.
struct AttentionRun {
  std::vector<float> out;
  AttentionCounters counters;
  uint32_t num_items = 0;
  uint32_t num_merge_items = 0;
  uint32_t num_runs = 0;  // that sequences share
};

// Plans for `num_threads` and runs all items on this thread, in any order in which none comes
// before the run that it waits for. q [num_rows, num_q_heads, head_dim_k].
AttentionRun RunAttention(const AttentionKernels& kernels, const AttentionShape& shape,
                          std::span<const SequenceRows> sequences, uint32_t layer,
                          std::span<const float> q, int num_threads = 1,
                          Cascade cascade = Cascade::kOn);

}  // namespace quire
