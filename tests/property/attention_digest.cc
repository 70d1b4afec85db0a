#include "attention/test_pages.h"
#include "property/bits_digest.h"

namespace quire {
namespace {

// A prompt of `length` tokens, computed at once: positions on both sides of a split boundary.
void DigestCase(const std::string& name, const TestCase& test, uint32_t length,
                InstructionSet set) {
  std::mt19937 rng(7);
  const AttentionKernels& kernels = GetAttentionKernels(set);
  const AttentionShape shape = MakeTestShape(test);
  const size_t num_values = size_t{length} * test.num_kv_heads;
  const auto k = UniformFloats(rng, num_values * test.head_dim_k, -2.0f, 2.0f);
  const auto v = UniformFloats(rng, num_values * test.head_dim_v, -2.0f, 2.0f);
  TestPages pages(shape, {&length, 1}, rng);
  pages.Append(kernels, 0, 0, 0, length, k.data(), v.data());

  constexpr uint32_t kNumRows = 40;
  const auto q = UniformFloats(
      rng, size_t{kNumRows} * test.num_kv_heads * test.group_size * test.head_dim_k, -2.0f, 2.0f);
  const SequenceRows rows = {pages.view(0), 0, kNumRows, length - kNumRows};
  Digest digest;
  digest.AddAll(RunAttention(kernels, shape, {&rows, 1}, 0, q).out);
  PrintDigest("attention." + name, set, digest);
}

}  // namespace

void DigestAttention(InstructionSet set) {
  DigestCase("f16", {.num_kv_heads = 2, .group_size = 3}, 1050, set);
  DigestCase("f16_window", {.page_size = 16, .head_dim_k = 32, .head_dim_v = 32, .window = 50}, 200,
             set);
  DigestCase("f16_odd_dims", {.page_size = 48, .group_size = 4, .head_dim_k = 80, .head_dim_v = 17},
             2060, set);
  DigestCase("f32", {.group_size = 2, .k_codec = KvCodec::kF32, .v_codec = KvCodec::kF32}, 1050,
             set);
}

}  // namespace quire
