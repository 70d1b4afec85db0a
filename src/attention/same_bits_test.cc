// The bits of a row depend on its position, its keys and the shape alone: chunks, threads, other
// sequences, the place of pages and the instruction set change none.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <string>

#include "attention/kernels.h"
#include "attention/test_pages.h"

namespace quire {
namespace {

std::vector<uint32_t> Bits(std::span<const float> x) {
  std::vector<uint32_t> bits;
  for (float y : x) bits.push_back(std::bit_cast<uint32_t>(y));
  return bits;
}

// One sequence: K, V and q of positions [0, length).
struct Tokens {
  Tokens(const TestCase& test, uint32_t n, uint32_t seed) : length(n) {
    std::mt19937 rng(seed);
    const size_t heads = test.num_kv_heads;
    k = RandomValues(rng, n * heads * test.head_dim_k);
    v = RandomValues(rng, n * heads * test.head_dim_v);
    q = RandomValues(rng, n * heads * test.group_size * test.head_dim_k, 2.0f);
    // Zeros of both signs and tiny values: sums that a stray + 0 would change.
    for (size_t i = 0; i < v.size(); i += 3) v[i] = i % 2 == 0 ? -0.0f : -1e-7f;
  }
  uint32_t length;
  std::vector<float> k, v, q;
};

// Outputs of positions [first, length), appended and computed `chunk` at a time.
std::vector<uint32_t> InChunks(const TestCase& test, const Tokens& tokens, uint32_t first,
                               uint32_t chunk, InstructionSet set, int num_threads = 1) {
  std::mt19937 rng(chunk * 31 + static_cast<uint32_t>(num_threads));
  const AttentionKernels& kernels = GetAttentionKernels(set);
  const AttentionShape shape = MakeTestShape(test);
  const size_t k_row = size_t{test.num_kv_heads} * test.head_dim_k;
  const size_t v_row = size_t{test.num_kv_heads} * test.head_dim_v;
  const size_t q_row = k_row * test.group_size;
  TestPages pages(shape, {&tokens.length, 1}, rng);
  pages.Append(kernels, 0, 0, 0, first, tokens.k.data(), tokens.v.data());
  std::vector<uint32_t> bits;
  for (uint32_t at = first; at < tokens.length;) {
    const uint32_t n = std::min(chunk, tokens.length - at);
    pages.Append(kernels, 0, 0, at, n, &tokens.k[at * k_row], &tokens.v[at * v_row]);
    pages.Forget(0, at);
    const SequenceRows rows = {pages.view(0), 0, n, at};
    const auto run = RunAttention(kernels, shape, {&rows, 1}, 0, {&tokens.q[at * q_row], n * q_row},
                                  num_threads);
    for (uint32_t b : Bits(run.out)) bits.push_back(b);
    at += n;
  }
  return bits;
}

constexpr KvCodec kKivi = KvCodec::kKivi4;
const TestCase kCases[] = {
    {.num_kv_heads = 2, .group_size = 3},
    {.page_size = 16, .group_size = 1, .head_dim_k = 32, .head_dim_v = 32, .window = 50},
    {.page_size = 128, .group_size = 4, .head_dim_k = 80, .head_dim_v = 80},
    {.page_size = 48, .group_size = 2, .head_dim_k = 40, .head_dim_v = 17, .window = 1000},
    {.page_size = 32,
     .group_size = 8,
     .head_dim_k = 16,
     .head_dim_v = 48,
     .k_codec = KvCodec::kF32,
     .v_codec = KvCodec::kF32},
    {.group_size = 5, .head_dim_k = 16, .head_dim_v = 33, .k_codec = KvCodec::kF32},
    {.group_size = 1, .head_dim_k = 16, .head_dim_v = 16, .window = 3},
    // A tile of whole steps holds rows that saw the step before and rows that did not.
    {.page_size = 16, .group_size = 4, .head_dim_k = 32, .head_dim_v = 32, .window = 100},
    {.num_kv_heads = 2, .group_size = 3, .k_codec = kKivi, .v_codec = kKivi, .sink_pages = 1},
    {.page_size = 16,
     .group_size = 2,
     .head_dim_k = 33,
     .head_dim_v = 41,
     .k_codec = kKivi,
     .v_codec = kKivi,
     .window = 50},
    {.page_size = 48,
     .group_size = 5,
     .head_dim_k = 80,
     .head_dim_v = 130,
     .k_codec = kKivi,
     .v_codec = KvCodec::kF16,
     .sink_pages = 1,
     .recent_pages = 1},
};

// Positions around the start, and around the first boundary between splits.
struct Range {
  uint32_t first, length;
};
constexpr Range kRanges[] = {{0, 140}, {1005, 1080}, {2040, 2052}};

TEST(AttentionSameBits, DecodeAndPrefillInAnyChunks) {
  for (const TestCase& test : kCases)
    for (const Range& range : kRanges) {
      SCOPED_TRACE("group " + std::to_string(test.group_size) + " dims " +
                   std::to_string(test.head_dim_v) + " from " + std::to_string(range.first));
      const Tokens tokens(test, range.length, range.first + 7);
      const auto decode = InChunks(test, tokens, range.first, 1, InstructionSet::kPortable);
      for (InstructionSet set : AvailableInstructionSets())
        for (uint32_t chunk : {1u, 2u, 7u, 64u, 100000u}) {
          // Portable code is a hundred times slower: a small and the largest tile must do.
          if (set == InstructionSet::kPortable && chunk != 7 && chunk != 100000) continue;
          EXPECT_TRUE(decode == InChunks(test, tokens, range.first, chunk, set))
              << InstructionSetName(set) << " chunk " << chunk;
        }
    }
}

TEST(AttentionSameBits, AnyNumberOfThreads) {
  const InstructionSet set = AvailableInstructionSets().back();
  for (const TestCase& test : kCases) {
    const Tokens tokens(test, 5130, 11);
    for (uint32_t first : {5129u, 5121u, 5110u, 4900u}) {
      const auto one = InChunks(test, tokens, first, 100000, set, 1);
      for (int num_threads : {2, 3, 16, 200})
        EXPECT_TRUE(one == InChunks(test, tokens, first, 100000, set, num_threads))
            << num_threads << " threads, group " << test.group_size;
    }
  }
}

// The plans of the test above do differ: in some, items leave states to a merge stage.
TEST(AttentionSameBits, ThreadsChangeThePlan) {
  const AttentionShape shape = MakeTestShape(kCases[0]);
  std::mt19937 rng(1);
  const uint32_t length = 5000;
  const TestPages pages(shape, {&length, 1}, rng);
  const SequenceRows rows = {pages.view(0), 0, 1, length - 1};
  AttentionPlan plan;
  plan.Build(shape, {&rows, 1}, 1);
  EXPECT_EQ(plan.num_merge_items(), 0u);
  EXPECT_EQ(plan.num_items(), 2u);
  plan.Build(shape, {&rows, 1}, 2);
  EXPECT_EQ(plan.num_merge_items(), 2u);
  EXPECT_EQ(plan.num_items(), 10u);
}

TEST(AttentionSameBits, AloneAndAmongOtherSequences) {
  for (const TestCase& test : kCases) {
    const AttentionShape shape = MakeTestShape(test);
    const uint32_t lengths[] = {70, 1500, 1, 300, 2100};
    const uint32_t num_rows[] = {70, 1, 1, 64, 9};
    const size_t k_row = size_t{test.num_kv_heads} * test.head_dim_k;
    const size_t v_row = size_t{test.num_kv_heads} * test.head_dim_v;
    for (InstructionSet set : AvailableInstructionSets()) {
      const AttentionKernels& kernels = GetAttentionKernels(set);
      std::mt19937 rng(5);
      TestPages pages(shape, lengths, rng);
      std::vector<SequenceRows> sequences;
      std::vector<float> q;
      // Rows of the batch stand in another order than the sequences.
      uint32_t row = 145;
      for (size_t i = 0; i < 5; ++i) {
        const Tokens tokens(test, lengths[i], 50 + static_cast<uint32_t>(i));
        pages.Append(kernels, i, 0, 0, lengths[i], tokens.k.data(), tokens.v.data());
        row -= num_rows[i];
        sequences.push_back({pages.view(i), row, num_rows[i], lengths[i] - num_rows[i]});
        q.insert(q.begin(), tokens.q.end() - num_rows[i] * k_row * test.group_size, tokens.q.end());
      }
      const auto all = Bits(RunAttention(kernels, shape, sequences, 0, q, 2).out);
      const size_t q_row = k_row * test.group_size, out_row = v_row * test.group_size;
      for (size_t i = 0; i < 5; ++i) {
        SequenceRows alone = sequences[i];
        alone.first_row = 0;
        const auto bits =
            Bits(RunAttention(kernels, shape, {&alone, 1}, 0,
                              {&q[sequences[i].first_row * q_row], num_rows[i] * q_row})
                     .out);
        EXPECT_TRUE(
            std::equal(bits.begin(), bits.end(), all.begin() + sequences[i].first_row * out_row))
            << InstructionSetName(set) << " sequence " << i;
      }
    }
  }
}

}  // namespace
}  // namespace quire
