#include "codec/kivi.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "codec/affine_group.h"
#include "codec/code_units.h"

namespace quire {
namespace {

constexpr KvCodec kKivi = KvCodec::kKivi4;

// A chunk in both forms. What no value lies in holds 0xFF before sealing.
class Chunk {
 public:
  Chunk(uint32_t page_size, uint32_t head_dim_k, uint32_t head_dim_v, KvCodec k = kKivi,
        KvCodec v = kKivi) {
    auto forms = MakeKvForms({.page_size = page_size,
                              .num_layers = 1,
                              .num_kv_heads = 1,
                              .head_dim_k = head_dim_k,
                              .head_dim_v = head_dim_v},
                             {.k_codec = k, .v_codec = v}, 0);
    forms_ = forms.value();
    open_.assign(forms_.open.layout.chunk_bytes, std::byte{0xFF});
  }
  const KvForms& forms() const { return forms_; }

  void SetK(uint32_t token, uint32_t channel, float x) {
    Set(forms_.open.layout.k_codes_offset, KElement(forms_.open.layout, token, channel),
        forms_.open.k_codec, x);
  }
  void SetV(uint32_t token, uint32_t channel, float x) {
    Set(forms_.open.layout.v_codes_offset, VElement(forms_.open.layout, token, channel),
        forms_.open.v_codec, x);
  }
  void SetAll(std::mt19937& rng) {
    std::normal_distribution<float> normal;
    const KvLayout& layout = forms_.open.layout;
    for (uint32_t token = 0; token < layout.page_size; ++token) {
      for (uint32_t c = 0; c < layout.head_dim_k; ++c)
        SetK(token, c, normal(rng) + static_cast<float>(c));
      for (uint32_t c = 0; c < layout.head_dim_v; ++c) SetV(token, c, normal(rng));
    }
  }

  SealResult Seal(std::byte fill = std::byte{0xAA}) {
    sealed_.assign(forms_.sealed.layout.chunk_bytes, fill);
    return SealChunk(forms_.open, forms_.sealed, open_.data(), sealed_.data());
  }
  float K(uint32_t token, uint32_t channel) const {
    return SealedK(forms_.sealed.layout, sealed_.data(), token, channel);
  }
  float V(uint32_t token, uint32_t channel) const {
    return SealedV(forms_.sealed.layout, sealed_.data(), token, channel);
  }
  const std::vector<std::byte>& sealed() const { return sealed_; }
  std::vector<std::byte>& open() { return open_; }

 private:
  void Set(size_t offset, size_t element, KvCodec codec, float x) {
    const uint16_t half = FloatToHalfSaturated(x);
    if (codec == KvCodec::kF32)
      std::memcpy(open_.data() + offset + element * 4, &x, 4);
    else
      std::memcpy(open_.data() + offset + element * 2, &half, 2);
  }

  KvForms forms_;
  std::vector<std::byte> open_, sealed_;
};

std::vector<int> Bytes(const Chunk& chunk, size_t offset, size_t n) {
  std::vector<int> bytes;
  for (size_t i = 0; i < n; ++i) bytes.push_back(std::to_integer<int>(chunk.sealed()[offset + i]));
  return bytes;
}

// Example 12 of the specification: code c in channel c (K), code t in token t (V). Scale 1, offset
// 0 because a 15 and a 0 stand elsewhere in the group.
TEST(Kivi, CodesLieInUnitsByBytesThenHalvesOfBytes) {
  Chunk chunk(16, 8, 16);
  for (uint32_t token = 0; token < 16; ++token) {
    for (uint32_t c = 0; c < 8; ++c)
      chunk.SetK(token, c, token == 1 ? 0.0f : token == 2 ? 15.0f : static_cast<float>(c));
    for (uint32_t c = 0; c < 16; ++c)
      chunk.SetV(token, c, c == 1 ? 0.0f : c == 2 ? 15.0f : static_cast<float>(token % 8));
  }
  EXPECT_EQ(chunk.Seal(), SealResult::kFinite);
  const KvLayout& layout = chunk.forms().sealed.layout;
  const std::vector<int> want = {0x40, 0x51, 0x62, 0x73};
  EXPECT_EQ(Bytes(chunk, layout.k_codes_offset, 4), want);
  EXPECT_EQ(Bytes(chunk, layout.k_codes_offset + 3 * 4, 4), want);
  EXPECT_EQ(Bytes(chunk, layout.v_codes_offset, 4), want);
  EXPECT_EQ(Bytes(chunk, layout.v_codes_offset + 3 * 4, 4), want);
  EXPECT_EQ(Bytes(chunk, layout.k_codes_offset + 2 * 4, 4), (std::vector<int>(4, 0xFF)));
  // Scales, then offsets.
  EXPECT_EQ(Bytes(chunk, 0, 2), (std::vector<int>{0x00, 0x3C}));
  EXPECT_EQ(Bytes(chunk, 16, 2), (std::vector<int>{0, 0}));
}

struct Sizes {
  uint32_t page_size, head_dim_k, head_dim_v;
};
constexpr Sizes kSizes[] = {{16, 1, 1},     {16, 8, 16},    {48, 17, 33},   {64, 64, 64},
                            {64, 80, 112},  {32, 127, 127}, {64, 128, 129}, {16, 192, 192},
                            {48, 256, 300}, {4096, 3, 5}};

// K: a group for each channel over the page; V: one for each token and 128 channels.
TEST(Kivi, EveryGroupIsAnAffineGroupOfItsValues) {
  std::mt19937 rng(1);
  for (const Sizes& sizes : kSizes) {
    SCOPED_TRACE(std::to_string(sizes.page_size) + " " + std::to_string(sizes.head_dim_v));
    Chunk chunk(sizes.page_size, sizes.head_dim_k, sizes.head_dim_v);
    chunk.SetAll(rng);
    std::normal_distribution<float> normal;
    std::vector<std::vector<float>> k(sizes.head_dim_k), v(sizes.page_size);
    for (uint32_t token = 0; token < sizes.page_size; ++token) {
      for (uint32_t c = 0; c < sizes.head_dim_k; ++c) {
        k[c].push_back(HalfToFloat(FloatToHalf(normal(rng) + static_cast<float>(c))));
        chunk.SetK(token, c, k[c].back());
      }
      for (uint32_t c = 0; c < sizes.head_dim_v; ++c) {
        v[token].push_back(HalfToFloat(FloatToHalf(normal(rng))));
        chunk.SetV(token, c, v[token].back());
      }
    }
    EXPECT_EQ(chunk.Seal(), SealResult::kFinite);
    std::vector<uint8_t> codes(4096);
    for (uint32_t c = 0; c < sizes.head_dim_k; ++c) {
      const AffineGroup group = EncodeAffineGroup(k[c], 4, codes.data());
      for (uint32_t token = 0; token < sizes.page_size; ++token)
        ASSERT_EQ(chunk.K(token, c), group.Decode(codes[token])) << token << " " << c;
    }
    for (uint32_t token = 0; token < sizes.page_size; ++token)
      for (uint32_t first = 0; first < sizes.head_dim_v; first += 128) {
        const uint32_t n = std::min(128u, sizes.head_dim_v - first);
        const AffineGroup group =
            EncodeAffineGroup(std::span(v[token]).subspan(first, n), 4, codes.data());
        for (uint32_t c = 0; c < n; ++c)
          ASSERT_EQ(chunk.V(token, first + c), group.Decode(codes[c])) << token << " " << c;
      }
  }
}

// [codec.kivi.1] [codec.kivi.2]: what was in the sealed chunk, or in the padding of the open one,
// is nowhere.
TEST(Kivi, EveryByteIsAFunctionOfTheValues) {
  for (const KvCodec v : {kKivi, KvCodec::kF16})
    for (const Sizes& sizes : kSizes) {
      std::mt19937 rng(2);
      Chunk chunk(sizes.page_size, sizes.head_dim_k, sizes.head_dim_v, kKivi, v);
      chunk.SetAll(rng);
      EXPECT_EQ(chunk.Seal(std::byte{0}), SealResult::kFinite);
      const std::vector<std::byte> want = chunk.sealed();
      Chunk other(sizes.page_size, sizes.head_dim_k, sizes.head_dim_v, kKivi, v);
      std::fill(other.open().begin(), other.open().end(), std::byte{0x5A});
      std::mt19937 again(2);
      other.SetAll(again);
      EXPECT_EQ(other.Seal(std::byte{0xFF}), SealResult::kFinite);
      EXPECT_TRUE(other.sealed() == want) << sizes.page_size << " " << sizes.head_dim_v;
    }
}

TEST(Kivi, ASideThatIsFinalKeepsItsBytes) {
  for (const KvCodec plain : {KvCodec::kF16, KvCodec::kF32}) {
    std::mt19937 rng(3);
    Chunk k_only(48, 20, 17, kKivi, plain), v_only(48, 20, 17, plain, kKivi);
    for (Chunk* chunk : {&k_only, &v_only}) {
      chunk->SetAll(rng);
      EXPECT_EQ(chunk->Seal(), SealResult::kFinite);
    }
    const size_t bytes = KvElementBytes(plain) * 48;
    EXPECT_EQ(
        std::memcmp(k_only.sealed().data() + k_only.forms().sealed.layout.v_codes_offset,
                    k_only.open().data() + k_only.forms().open.layout.v_codes_offset, 17 * bytes),
        0);
    EXPECT_EQ(
        std::memcmp(v_only.sealed().data() + v_only.forms().sealed.layout.k_codes_offset,
                    v_only.open().data() + v_only.forms().open.layout.k_codes_offset, 20 * bytes),
        0);
  }
}

TEST(Kivi, ANanSpoilsItsGroupAndNoOther) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()})
    for (const bool in_k : {true, false}) {
      std::mt19937 rng(4);
      Chunk chunk(32, 24, 140);
      chunk.SetAll(rng);
      if (in_k)
        chunk.SetK(9, 5, bad);
      else
        chunk.SetV(9, 130, bad);
      EXPECT_EQ(chunk.Seal(), SealResult::kNonFinite);
      for (uint32_t token = 0; token < 32; ++token) {
        for (uint32_t c = 0; c < 24; ++c) EXPECT_EQ(std::isnan(chunk.K(token, c)), in_k && c == 5);
        for (uint32_t c = 0; c < 140; ++c)
          EXPECT_EQ(std::isnan(chunk.V(token, c)), !in_k && token == 9 && c >= 128);
      }
    }
}

// Subnormal and extreme halves: each finite half is read as what it is.
TEST(Kivi, AllFiniteHalvesAreReadAsTheyAre) {
  Chunk chunk(16, 1, 1);
  for (uint32_t half = 0; half < 0x10000; ++half) {
    const float x = HalfToFloat(static_cast<uint16_t>(half));
    if (!std::isfinite(x)) continue;
    for (uint32_t token = 0; token < 16; ++token) chunk.SetK(token, 0, x), chunk.SetV(token, 0, x);
    ASSERT_EQ(chunk.Seal(), SealResult::kFinite);
    ASSERT_EQ(chunk.K(3, 0), x);  // one value: the offset
    ASSERT_EQ(chunk.V(3, 0), x);
  }
}

}  // namespace
}  // namespace quire
