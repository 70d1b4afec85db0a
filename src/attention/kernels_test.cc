// The attention kernels against the double reference, on every instruction set of this machine.
#include "attention/kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "attention/reference.h"
#include "attention/test_pages.h"

namespace quire {
namespace {

constexpr uint32_t kRagged[] = {1, 15, 16, 17, 63, 64, 65, 1023, 1024, 1025, 2049, 4100};

std::string Name(const TestCase& t, InstructionSet set) {
  return std::string(InstructionSetName(set)) + " page " + std::to_string(t.page_size) + " heads " +
         std::to_string(t.num_kv_heads) + "x" + std::to_string(t.group_size) + " dims " +
         std::to_string(t.head_dim_k) + "/" + std::to_string(t.head_dim_v) + " window " +
         std::to_string(t.window) + " codecs " + std::string(KvCodecName(t.k_codec)) + "/" +
         std::string(KvCodecName(t.v_codec)) + " sink " + std::to_string(t.sink_pages) +
         " recent " + std::to_string(t.recent_pages);
}

double Norm(std::span<const float> x) {
  double sum = 0;
  for (float y : x) sum += static_cast<double>(y) * y;
  return std::sqrt(sum);
}

// The largest possible error of one output, with e = 2^-24 and first-order terms only.
//   score (base 2), head_dim FMAs and three roundings of q:  e (head_dim + 3) |q||k| scale log2(e)
//   weight: twice that (score and maximum), times ln 2; the rounding of s - m, at most twice the
//     size of a score; 3e-7 for exp2 of the weight and of each rescale, one a page and a merge
//   sums of o and d: a rounding a token of a page, a page of a split and a split
// numerator and denominator each bring both; |V| bounds the weighted mean.
double ErrorBound(const AttentionShape& shape, uint32_t num_keys, double q_norm, double k_norm,
                  double v_max) {
  const double e = 0x1p-24;
  const double pages = num_keys / shape.layout.page_size + 1.0, splits = num_keys / 1024 + 1.0;
  const double score = q_norm * k_norm * shape.scale * 1.4427;
  const double weight = 0.6932 * e * score * (2 * (shape.layout.head_dim_k + 3.0) + 2) +
                        3e-7 * (1 + std::min(pages, 64.0) + splits);
  const double sums = e * (shape.layout.page_size + 1024.0 / 16 + 2 * splits + 16);
  return 2 * (weight + sums) * v_max;
}

// Several ragged sequences in one plan; the last `num_rows` positions of each (at most) are rows.
void CompareWithReference(const TestCase& test, std::span<const uint32_t> lengths,
                          uint32_t num_rows, uint32_t seed) {
  std::mt19937 rng(seed);
  const AttentionShape shape = MakeTestShape(test);
  TestPages pages(shape, lengths, rng);
  const uint32_t layer = test.num_layers - 1;
  std::vector<SequenceRows> sequences;
  uint32_t rows = 0;
  double k_norm = 0, v_max = 0;
  const auto& writer = GetAttentionKernels(InstructionSet::kPortable);
  for (size_t i = 0; i < lengths.size(); ++i) {
    const size_t num_vectors = size_t{lengths[i]} * test.num_kv_heads;
    const auto k = RandomValues(rng, num_vectors * test.head_dim_k, 1.01f);
    const auto v = RandomValues(rng, num_vectors * test.head_dim_v, 0.99f);
    pages.Append(writer, i, layer, 0, lengths[i], k.data(), v.data());
    for (size_t j = 0; j < num_vectors; ++j)
      k_norm = std::max(k_norm, Norm({&k[j * test.head_dim_k], test.head_dim_k}) * (1 + 0x1p-10));
    for (float x : v) v_max = std::max(v_max, std::fabs(x) * (1 + 0x1p-10));
    const uint32_t n = std::min(num_rows, lengths[i]);
    pages.Forget(i, lengths[i] - n);
    sequences.push_back({pages.view(i), rows, n, lengths[i] - n});
    rows += n;
  }
  // A decoded value may be larger than the value by half a step, a thirtieth of the range of seven
  // deviations.
  if (shape.has_sealed()) k_norm *= 1.5, v_max *= 1.5;
  const auto q = RandomValues(rng, size_t{rows} * shape.num_q_heads * test.head_dim_k, 1.5f);
  std::vector<double> want(size_t{rows} * shape.num_q_heads * test.head_dim_v);
  ReferenceAttention(shape, sequences, layer, q.data(), want.data());
  double q_norm = 0;
  for (size_t i = 0; i < q.size(); i += test.head_dim_k)
    q_norm = std::max(q_norm, Norm({&q[i], test.head_dim_k}));
  const uint32_t longest = *std::max_element(lengths.begin(), lengths.end());
  const double bound = ErrorBound(shape, longest, q_norm, k_norm, v_max);
  for (InstructionSet set : AvailableInstructionSets()) {
    SCOPED_TRACE(Name(test, set) + " seed " + std::to_string(seed));
    const AttentionRun run =
        RunAttention(GetAttentionKernels(set), shape, sequences, layer, q, 1 + seed % 3);
    ASSERT_EQ(run.out.size(), want.size());
    double worst = 0, error = 0, norm = 0;
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_FALSE(std::isnan(run.out[i])) << i;
      worst = std::max(worst, std::fabs(run.out[i] - want[i]));
      error += (run.out[i] - want[i]) * (run.out[i] - want[i]);
      norm += want[i] * want[i];
    }
    EXPECT_LE(worst, bound);
    // The bound assumes that all roundings point one way. As a whole they must be near what one
    // f32 rounding in a dot product and one in exp2 give: 7e-7 measured, 1.4e-6 for a peaked
    // softmax.
    EXPECT_LE(std::sqrt(error / norm), 2e-6);
  }
}

TEST(AttentionKernels, AgreeWithTheReferenceForEveryHeadDim) {
  constexpr uint32_t kDims[] = {1, 8, 17, 32, 64, 80, 96, 127, 128, 192, 256};
  constexpr uint32_t kPages[] = {16, 32, 64, 128, 48};
  uint32_t i = 0;
  for (uint32_t dim : kDims) {
    CompareWithReference({.page_size = kPages[i % 5],
                          .num_layers = 2,
                          .num_kv_heads = 1 + i % 2,
                          .group_size = 1 + i % 4,
                          .head_dim_k = dim,
                          .head_dim_v = dim},
                         kRagged, 1 + i % 3, i);
    ++i;
  }
}

TEST(AttentionKernels, AgreeWithTheReferenceForEveryGroupSize) {
  constexpr uint32_t kLengths[] = {1, 17, 64, 200, 1025, 2049};
  for (uint32_t group : {1, 2, 3, 4, 5, 6, 7, 8, 16, 71})
    CompareWithReference(
        {.num_kv_heads = 2, .group_size = group, .head_dim_k = 32, .head_dim_v = 48}, kLengths, 1,
        100 + group);
}

TEST(AttentionKernels, AgreeWithTheReferenceForEveryCodec) {
  for (KvCodec k : {KvCodec::kF32, KvCodec::kF16})
    for (KvCodec v : {KvCodec::kF32, KvCodec::kF16})
      for (uint32_t dim : {64, 40})
        CompareWithReference(
            {.group_size = 3, .head_dim_k = dim, .head_dim_v = dim, .k_codec = k, .v_codec = v},
            kRagged, 2, 200 + dim);
}

TEST(AttentionKernels, AgreeWithTheReferenceForEveryWindow) {
  for (uint32_t window : {1, 2, 5, 16, 64, 65, 100, 1000, 1024, 1500, 5000})
    CompareWithReference({.page_size = window % 2 == 0 ? 64u : 16u,
                          .num_kv_heads = 2,
                          .group_size = 3,
                          .head_dim_k = 32,
                          .head_dim_v = 32,
                          .window = window},
                         kRagged, 8, 300 + window);
}

TEST(AttentionKernels, AgreeWithTheReferenceForPagesThatNoSplitStartsIn) {
  constexpr uint32_t kLengths[] = {1000, 1024, 1030, 2100, 3500};
  for (uint32_t page_size : {48, 80, 272, 2048, 4096})
    CompareWithReference(
        {.page_size = page_size, .group_size = 2, .head_dim_k = 32, .head_dim_v = 24}, kLengths, 30,
        400 + page_size);
}

TEST(AttentionKernels, PrefillAgreesWithTheReference) {
  constexpr uint32_t kLengths[] = {100, 150, 1060};
  CompareWithReference({.num_kv_heads = 2, .group_size = 3}, kLengths, 120, 500);
  CompareWithReference({.group_size = 1, .window = 70}, kLengths, 120, 501);
}

// Pages of all sizes, head_dims with tails; rows on both sides of a page's end.
TEST(AttentionKernels, AgreeWithTheReferenceForSealedPages) {
  constexpr KvCodec kKivi = KvCodec::kKivi4;
  constexpr std::pair<KvCodec, KvCodec> kCodecs[] = {{kKivi, kKivi},
                                                     {kKivi, KvCodec::kF16},
                                                     {KvCodec::kF32, kKivi},
                                                     {kKivi, KvCodec::kF32},
                                                     {KvCodec::kF16, kKivi}};
  constexpr uint32_t kDims[] = {1, 8, 17, 64, 80, 127, 128, 130, 192, 256, 300};
  constexpr uint32_t kPages[] = {16, 64, 48, 128, 2048};
  constexpr uint32_t kWindows[] = {0, 0, 70, 1500};
  constexpr uint32_t kLengths[] = {1, 63, 64, 65, 200, 1030, 2100};
  uint32_t i = 0;
  for (uint32_t dim : kDims)
    for (uint32_t recent_pages : {0, 1}) {
      const auto [k, v] = kCodecs[i % 5];
      CompareWithReference({.page_size = kPages[i / 2 % 5],
                            .num_layers = 1 + i % 2,
                            .num_kv_heads = 1 + i % 2,
                            .group_size = 1 + i % 5,
                            .head_dim_k = dim,
                            .head_dim_v = kDims[(i + 3) % 11],
                            .k_codec = k,
                            .v_codec = v,
                            .window = kWindows[i / 2 % 4],
                            .sink_pages = i / 3 % 2,
                            .recent_pages = recent_pages},
                           kLengths, i % 3 == 0 ? 20 : 1 + i % 3, 700 + i);
      ++i;
    }
}

// MAT-01: query head h reads KV head h / group_size.
TEST(AttentionKernels, EveryQueryHeadReadsTheKvHeadOfItsGroup) {
  const TestCase test = {.num_kv_heads = 4, .group_size = 3, .head_dim_k = 16, .head_dim_v = 16};
  const AttentionShape shape = MakeTestShape(test);
  std::mt19937 rng(1);
  const uint32_t lengths[] = {5};
  for (InstructionSet set : AvailableInstructionSets()) {
    TestPages pages(shape, lengths, rng);
    const auto k = RandomValues(rng, 5 * 4 * 16);
    std::vector<float> v(5 * 4 * 16);
    for (size_t i = 0; i < v.size(); ++i) v[i] = static_cast<float>(i / 16 % 4);
    pages.Append(GetAttentionKernels(set), 0, 0, 0, 5, k.data(), v.data());
    const SequenceRows rows = {pages.view(0), 0, 1, 4};
    const auto run =
        RunAttention(GetAttentionKernels(set), shape, {&rows, 1}, 0, RandomValues(rng, 12 * 16));
    for (size_t i = 0; i < run.out.size(); ++i)
      EXPECT_NEAR(run.out[i], static_cast<float>(i / 16 / 3), 1e-5) << i;
  }
}

// MAT-06: scores beyond 16 bits. All scores are equal, so the output is V itself.
TEST(AttentionKernels, HugeScoresStayFinite) {
  for (KvCodec codec : {KvCodec::kF16, KvCodec::kF32})
    for (InstructionSet set : AvailableInstructionSets()) {
      const TestCase test = {.group_size = 4,
                             .head_dim_k = 128,
                             .head_dim_v = 128,
                             .k_codec = codec,
                             .v_codec = codec};
      const AttentionShape shape = MakeTestShape(test);
      std::mt19937 rng(2);
      const uint32_t lengths[] = {1500};
      TestPages pages(shape, lengths, rng);
      const std::vector<float> k(1500 * 128, 300.0f), v(1500 * 128, 1.75f), q(2 * 4 * 128, 300.0f);
      pages.Append(GetAttentionKernels(set), 0, 0, 0, 1500, k.data(), v.data());
      const SequenceRows rows = {pages.view(0), 0, 2, 1498};
      for (float x : RunAttention(GetAttentionKernels(set), shape, {&rows, 1}, 0, q).out)
        EXPECT_EQ(x, 1.75f);
    }
}

// MAT-07: 65,536 equal weights. In 16-bit sums the small channel would vanish.
TEST(AttentionKernels, SmallTermsAreNotLostInLongSums) {
  for (KvCodec codec : {KvCodec::kF16, KvCodec::kF32})
    for (InstructionSet set : AvailableInstructionSets()) {
      const TestCase test = {.head_dim_k = 4, .head_dim_v = 2, .k_codec = codec, .v_codec = codec};
      const AttentionShape shape = MakeTestShape(test);
      std::mt19937 rng(3);
      const uint32_t lengths[] = {65536};
      TestPages pages(shape, lengths, rng);
      const std::vector<float> k(65536 * 4, 1.0f), q(4, 1.0f);
      std::vector<float> v(65536 * 2);
      for (size_t i = 0; i < v.size(); ++i) v[i] = i % 2 == 0 ? 1.0f : 0.001f;
      pages.Append(GetAttentionKernels(set), 0, 0, 0, 65536, k.data(), v.data());
      const SequenceRows rows = {pages.view(0), 0, 1, 65535};
      const auto run = RunAttention(GetAttentionKernels(set), shape, {&rows, 1}, 0, q, 2);
      double want[2];
      ReferenceAttention(shape, {&rows, 1}, 0, q.data(), want);
      EXPECT_NEAR(run.out[0] / want[0], 1.0, 1e-6);
      EXPECT_NEAR(run.out[1] / want[1], 1.0, 1e-6);
    }
}

// MAT-12, the part that a plan can reach: rows whose window leaves whole splits without a key.
// The merge of empty states is in plan_test.cc.
TEST(AttentionKernels, SplitsOutsideTheWindowChangeNothing) {
  const uint32_t lengths[] = {2100};
  CompareWithReference({.group_size = 2, .head_dim_k = 32, .head_dim_v = 32, .window = 40}, lengths,
                       120, 600);
}

}  // namespace
}  // namespace quire
