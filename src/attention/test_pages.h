// TestPages: pages for tests of the attention kernels. They lie in shuffled order with holes
// between them, and every byte that no append has written is part of a NaN.
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
};

AttentionShape MakeTestShape(const TestCase& test);

// n values, bell-shaped, with mean 0 and deviation `size`; the largest are 3.5 times that.
std::vector<float> RandomValues(std::mt19937& rng, size_t n, float size = 1.0f);

class TestPages {
 public:
  // Room for sequences of these many tokens.
  TestPages(const AttentionShape& shape, std::span<const uint32_t> lengths, std::mt19937& rng);

  KvView view(size_t sequence) const {
    return {tables_[sequence].data(), static_cast<uint32_t>(tables_[sequence].size())};
  }

  // Sequence `to` has the first `num_pages` pages of `from` from here on.
  void Share(size_t from, size_t to, uint32_t num_pages);

  // Appends K and V [num_tokens, num_kv_heads, head_dim] at `position` of one layer.
  AppendResult Append(const AttentionKernels& kernels, size_t sequence, uint32_t layer,
                      uint32_t position, uint32_t num_tokens, const float* k, const float* v);

  std::span<const std::byte> bytes() const { return {first_page_, num_bytes_}; }

 private:
  AttentionShape shape_;
  std::vector<std::byte> memory_;
  std::byte* first_page_ = nullptr;
  size_t num_bytes_ = 0;
  std::vector<std::vector<std::byte*>> tables_;
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
