// Append writes the bytes of the plain codecs, and nothing else, and reports what did not fit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "attention/kernels.h"
#include "attention/reference.h"
#include "attention/test_pages.h"
#include "base/half.h"

namespace quire {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// docs/formats.md: the value that the codec must give back.
float Stored(KvCodec codec, float x) {
  if (codec == KvCodec::kF32 || std::isnan(x)) return x;
  return HalfToFloat(FloatToHalfSaturated(x));
}

size_t CountWritten(std::span<const std::byte> bytes, const std::vector<std::byte>& before) {
  size_t n = 0;
  for (size_t i = 0; i < bytes.size(); ++i) n += bytes[i] != before[i];
  return n;
}

const TestCase kCases[] = {
    {.num_layers = 2, .num_kv_heads = 2, .head_dim_k = 64, .head_dim_v = 64},
    {.page_size = 16,
     .num_kv_heads = 1,
     .head_dim_k = 17,
     .head_dim_v = 9,
     .k_codec = KvCodec::kF32},
    {.page_size = 48,
     .num_kv_heads = 3,
     .head_dim_k = 1,
     .head_dim_v = 80,
     .v_codec = KvCodec::kF32},
};

TEST(AttentionAppend, WritesEachValueToItsSlotAndNothingElse) {
  for (const TestCase& test : kCases)
    for (InstructionSet set : AvailableInstructionSets()) {
      const AttentionKernels& kernels = GetAttentionKernels(set);
      const AttentionShape shape = MakeTestShape(test);
      std::mt19937 rng(1);
      const uint32_t length = 150, layer = test.num_layers - 1;
      TestPages pages(shape, {&length, 1}, rng);
      const size_t k_row = size_t{test.num_kv_heads} * test.head_dim_k;
      const size_t v_row = size_t{test.num_kv_heads} * test.head_dim_v;
      // Positive normal numbers below 2: no byte of their forms is 0xFF, what free slots hold.
      auto k = RandomValues(rng, length * k_row), v = RandomValues(rng, length * v_row);
      for (float& x : k) x = std::fabs(x) + 0.25f;
      for (float& x : v) x = std::fabs(x) + 0.25f;
      uint32_t at = 0;
      for (uint32_t n : {1, 15, 40, 1, 93}) {
        const std::vector<std::byte> before(pages.bytes().begin(), pages.bytes().end());
        const AppendResult result =
            pages.Append(kernels, 0, layer, at, n, &k[at * k_row], &v[at * v_row]);
        EXPECT_FALSE(result.non_finite);
        EXPECT_EQ(result.num_saturated, 0u);
        EXPECT_LE(CountWritten(pages.bytes(), before), n * (k_row * KvElementBytes(test.k_codec) +
                                                            v_row * KvElementBytes(test.v_codec)));
        at += n;
      }
      ASSERT_EQ(at, length);
      for (uint32_t t = 0; t < length; ++t)
        for (uint32_t head = 0; head < test.num_kv_heads; ++head) {
          for (uint32_t d = 0; d < test.head_dim_k; ++d)
            EXPECT_EQ(ReferenceK(shape, pages.view(0), layer, head, t / test.page_size, t, d),
                      Stored(test.k_codec, k[t * k_row + head * test.head_dim_k + d]));
          for (uint32_t d = 0; d < test.head_dim_v; ++d)
            EXPECT_EQ(ReferenceV(shape, pages.view(0), layer, head, t / test.page_size, t, d),
                      Stored(test.v_codec, v[t * v_row + head * test.head_dim_v + d]));
        }
    }
}

TEST(AttentionAppend, EveryInstructionSetWritesTheSameBytes) {
  for (const TestCase& test : kCases) {
    const AttentionShape shape = MakeTestShape(test);
    std::vector<std::byte> want;
    for (InstructionSet set : AvailableInstructionSets()) {
      std::mt19937 rng(2);
      const uint32_t length = 100;
      TestPages pages(shape, {&length, 1}, rng);
      auto k = RandomValues(rng, size_t{length} * test.num_kv_heads * test.head_dim_k, 30000.0f);
      auto v = RandomValues(rng, size_t{length} * test.num_kv_heads * test.head_dim_v, 1e-6f);
      k[3] = kInfinity;
      k[7] = -kNan;
      v[5] = kNan;
      v[6] = -kInfinity;
      v[8] = -0.0f;
      const auto result =
          pages.Append(GetAttentionKernels(set), 0, 0, 0, length, k.data(), v.data());
      EXPECT_TRUE(result.non_finite);
      const std::vector<std::byte> bytes(pages.bytes().begin(), pages.bytes().end());
      if (want.empty()) want = bytes;
      EXPECT_TRUE(bytes == want) << InstructionSetName(set);
    }
  }
}

TEST(AttentionAppend, ReportsNumbersThatDoNotFit) {
  for (KvCodec codec : {KvCodec::kF16, KvCodec::kF32})
    for (InstructionSet set : AvailableInstructionSets()) {
      const TestCase test = {
          .head_dim_k = 20, .head_dim_v = 20, .k_codec = codec, .v_codec = codec};
      const AttentionShape shape = MakeTestShape(test);
      std::mt19937 rng(3);
      const uint32_t length = 1;
      auto append = [&](uint32_t channel, float x, bool in_k) {
        TestPages pages(shape, {&length, 1}, rng);
        std::vector<float> k(20, 1.0f), v(20, 1.0f);
        (in_k ? k : v)[channel] = x;
        const auto result = pages.Append(GetAttentionKernels(set), 0, 0, 0, 1, k.data(), v.data());
        const float stored = in_k ? ReferenceK(shape, pages.view(0), 0, 0, 0, 0, channel)
                                  : ReferenceV(shape, pages.view(0), 0, 0, 0, 0, channel);
        return std::pair(result, stored);
      };
      const bool is_half = codec == KvCodec::kF16;
      for (bool in_k : {true, false})
        for (uint32_t channel : {0u, 15u, 16u, 19u}) {
          auto [large, large_stored] = append(channel, -70000.0f, in_k);
          EXPECT_FALSE(large.non_finite);
          EXPECT_EQ(large.num_saturated, is_half ? 1u : 0u);
          EXPECT_EQ(large_stored, is_half ? -65504.0f : -70000.0f);
          auto [fits, fits_stored] = append(channel, 65504.0f, in_k);
          EXPECT_EQ(fits.num_saturated, 0u);
          EXPECT_EQ(fits_stored, 65504.0f);
          auto [infinite, infinite_stored] = append(channel, kInfinity, in_k);
          EXPECT_TRUE(infinite.non_finite);
          EXPECT_EQ(infinite_stored, kInfinity);
          EXPECT_EQ(infinite.num_saturated, 0u);
          auto [nan, nan_stored] = append(channel, kNan, in_k);
          EXPECT_TRUE(nan.non_finite);
          EXPECT_TRUE(std::isnan(nan_stored));
        }
    }
}

}  // namespace
}  // namespace quire
