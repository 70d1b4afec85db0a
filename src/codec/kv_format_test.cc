#include "codec/kv_format.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "codec/kv_forms.h"

namespace quire {
namespace {

const KvFormat& Format(std::string_view name) {
  const KvFormat* format = FindKvFormat(name);
  EXPECT_NE(format, nullptr) << name;
  return format == nullptr ? KvFormats().front() : *format;
}

double BitsPerValue(KvSideBytes side, uint32_t page_size, uint32_t head_dim) {
  return static_cast<double>(side.total()) * 8 / (page_size * head_dim);
}

TEST(KvFormat, EveryCodecOfTheDesignHasOneRow) {
  std::set<std::string_view> names;
  for (const KvFormat& format : KvFormats()) EXPECT_TRUE(names.insert(format.name).second);
  EXPECT_EQ(names, (std::set<std::string_view>{"f32", "f16", "bf16", "fp8_e4m3", "fp8_e4m3:noscale",
                                               "fp8_e5m2", "int8", "int4", "kivi2", "kivi4",
                                               "tile2", "tile3", "tile4", "tile6", "tile8"}));
  EXPECT_EQ(FindKvFormat("q8_0"), nullptr);
  EXPECT_EQ(FindKvFormat(""), nullptr);
}

// What the engine has is one thing under two names.
TEST(KvFormat, TheOnesThatRunAreTheEnginesCodecs) {
  std::set<std::string_view> running;
  for (const KvFormat& format : KvFormats()) {
    EXPECT_EQ(format.runs(), ParseKvCodec(format.name).ok()) << format.name;
    if (!format.runs()) continue;
    running.insert(format.name);
    EXPECT_EQ(format.name, KvCodecName(*format.codec));
    EXPECT_EQ(&format, &KvFormatOf(*format.codec));
    EXPECT_EQ(format.is_page_wise, IsPageWise(*format.codec));
    EXPECT_EQ(OpenFormat(format).codec, OpenForm(*format.codec));
    auto forms = MakeKvForms(
        {.page_size = 64, .num_layers = 1, .num_kv_heads = 1, .head_dim_k = 64, .head_dim_v = 64},
        {.k_codec = *format.codec, .v_codec = *format.codec}, 0);
    ASSERT_TRUE(forms.ok());
    EXPECT_EQ(forms->rule.sink_pages, format.default_sink_pages) << format.name;
  }
  EXPECT_EQ(running, (std::set<std::string_view>{"f32", "f16", "kivi4"}));
}

// Default 1 for page-wise codecs of at most 6 bits, else 0 (docs/formats.md: the first page).
TEST(KvFormat, NarrowPageWiseCodecsKeepTheFirstPageOpen) {
  for (const KvFormat& format : KvFormats()) {
    EXPECT_EQ(format.default_sink_pages, format.is_page_wise && format.code_bits <= 6 ? 1u : 0u)
        << format.name;
    EXPECT_EQ(OpenFormat(format).name, format.is_page_wise ? "f16" : format.name);
  }
}

struct BitsCase {
  std::string_view name;
  // K and V of D64 P64, D64 P128, D128 P64, D128 P128, D256 P64, D256 P128.
  std::vector<std::pair<double, double>> bits;
};

const uint32_t kColumns[6][2] = {{64, 64}, {64, 128}, {128, 64}, {128, 128}, {256, 64}, {256, 128}};

TEST(KvFormat, BitsPerValueAreThoseOfTheTable) {
  const auto same = [](double a, double b, double c) {  // by head_dim only
    return std::vector<std::pair<double, double>>{{a, a}, {a, a}, {b, b}, {b, b}, {c, c}, {c, c}};
  };
  const std::vector<BitsCase> cases = {
      {"f32", same(32, 32, 32)},
      {"f16", same(16, 16, 16)},
      {"bf16", same(16, 16, 16)},
      {"fp8_e4m3", same(8.125, 8.0625, 8.03125)},  // 8 + 8/D
      {"fp8_e4m3:noscale", same(8, 8, 8)},
      {"fp8_e5m2", same(8, 8, 8)},
      {"int8", same(8.25, 8.125, 8.0625)},  // 8 + 16/D
      {"int4", same(4.5, 4.25, 4.25)},      // 4 + 32 G/D
      // b + 32/P; b + 32 G/D
      {"kivi4", {{4.5, 4.5}, {4.25, 4.5}, {4.5, 4.25}, {4.25, 4.25}, {4.5, 4.25}, {4.25, 4.25}}},
      {"kivi2", {{2.5, 2.5}, {2.25, 2.5}, {2.5, 2.25}, {2.25, 2.25}, {2.5, 2.25}, {2.25, 2.25}}},
      {"tile8", {{8.5, 8.5}, {8.25, 8.5}, {8.5, 8.25}, {8.25, 8.25}, {8.5, 8.25}, {8.25, 8.25}}},
      {"tile6", {{6.5, 6.5}, {6.25, 6.5}, {6.5, 6.25}, {6.25, 6.25}, {6.5, 6.25}, {6.25, 6.25}}},
      // b + 32/P + 16/D; b + 32 G/D
      {"tile4",
       {{4.75, 4.5}, {4.5, 4.5}, {4.625, 4.25}, {4.375, 4.25}, {4.5625, 4.25}, {4.3125, 4.25}}},
      {"tile3",
       {{3.75, 3.5}, {3.5, 3.5}, {3.625, 3.25}, {3.375, 3.25}, {3.5625, 3.25}, {3.3125, 3.25}}},
      {"tile2",
       {{2.75, 2.5}, {2.5, 2.5}, {2.625, 2.25}, {2.375, 2.25}, {2.5625, 2.25}, {2.3125, 2.25}}},
  };
  EXPECT_EQ(cases.size(), KvFormats().size());
  for (const BitsCase& row : cases)
    for (size_t i = 0; i < 6; ++i) {
      const auto [head_dim, page_size] = kColumns[i];
      const KvFormat& format = Format(row.name);
      EXPECT_EQ(BitsPerValue(KSideBytes(format, page_size, head_dim), page_size, head_dim),
                row.bits[i].first)
          << row.name << " K, D " << head_dim << " P " << page_size;
      EXPECT_EQ(BitsPerValue(VSideBytes(format, page_size, head_dim), page_size, head_dim),
                row.bits[i].second)
          << row.name << " V, D " << head_dim << " P " << page_size;
    }
}

TEST(KvFormat, BytesOfAPageAndHead) {
  // D = 128, P = 128, K + V.
  const std::pair<std::string_view, uint64_t> cases[] = {
      {"f16", 65536},   {"int8", 33280},  {"tile8", 33792}, {"tile6", 25600},
      {"tile4", 17664}, {"tile3", 13568}, {"tile2", 9472}};
  for (const auto& [name, bytes] : cases)
    EXPECT_EQ(KvChunkBytes(Format(name), Format(name), 128, 128, 128), bytes) << name;
  // A model of 32 layers with 8 KV heads, per token: 256 chunks of 128 tokens.
  EXPECT_EQ(65536u * 256 / 128, 131072u);
  EXPECT_EQ(KvChunkBytes(Format("tile8"), Format("tile8"), 128, 128, 128) * 256 / 128, 67584u);
  EXPECT_EQ(KvChunkBytes(Format("tile4"), Format("tile4"), 128, 128, 128) * 256 / 128, 35328u);
  // K and V differ: K tile4 = 4.375 bits, V tile3 = 3.25 bits of 16,384 values.
  EXPECT_EQ(KvChunkBytes(Format("tile4"), Format("tile3"), 128, 128, 128), 8960u + 6656u);
}

TEST(KvFormat, SmallPagesCost) {
  // s, z [64] and tau [16] are 288 bytes, in whole 64 bytes 320; 512 of codes: 6.5 bits a value.
  EXPECT_EQ(KSideBytes(Format("tile4"), 16, 64).params, 320u);
  EXPECT_EQ(KSideBytes(Format("tile4"), 16, 64).total(), 832u);
  EXPECT_EQ(BitsPerValue(VSideBytes(Format("tile4"), 16, 64), 16, 64), 4.5);
}

TEST(KvFormat, EachPlaneOfCodesIsInWhole64Bytes) {
  // 16 tokens of 8 channels at 3 bits. K: 16 x 1 units of the 2-bit plane = 64 bytes, 16 x 1 of the
  // 1-bit plane = 64. V: 8 channels x 1 unit of each plane = 32 bytes, in whole 64 bytes each.
  EXPECT_EQ(KSideBytes(Format("tile3"), 16, 8).codes, 128u);
  EXPECT_EQ(VSideBytes(Format("tile3"), 16, 8).codes, 128u);
  // 6 bits, 48 tokens of 20 channels. K: 48 x ceil(20/8) x 4 = 576 and 48 x ceil(20/16) x 4 = 384.
  // V: 20 x ceil(48/8) x 4 = 480 -> 512 and 20 x ceil(48/16) x 4 = 240 -> 256.
  EXPECT_EQ(KSideBytes(Format("tile6"), 48, 20).codes, 576u + 384u);
  EXPECT_EQ(VSideBytes(Format("tile6"), 48, 20).codes, 512u + 256u);
}

TEST(KvFormat, AHeadThatIsNoMultipleOfAUnitOrGroupIsRoundedUp) {
  // 8 bits, 16 tokens of 6 channels: K has 2 units a token, V 4 units a channel.
  EXPECT_EQ(KSideBytes(Format("int8"), 16, 6).codes, 128u);
  EXPECT_EQ(VSideBytes(Format("int8"), 16, 6).codes, 128u);  // 6 x 4 x 4 = 96
  // bf16 keeps two values in a unit, f16 one: 64 tokens of 7 channels.
  EXPECT_EQ(KSideBytes(Format("bf16"), 64, 7).codes, 64u * 4 * 4);
  EXPECT_EQ(KSideBytes(Format("f16"), 64, 7).codes, 64u * 7 * 2);
  EXPECT_EQ(VSideBytes(Format("bf16"), 64, 7).codes, 64u * 7 * 2);
  // D = 192 has the groups 128 and 64: s and z of 64 tokens, twice.
  EXPECT_EQ(VSideBytes(Format("kivi4"), 64, 192).params, 64u * 2 * 4);
  EXPECT_EQ(KSideBytes(Format("int4"), 64, 192).params, 64u * 2 * 4);
  EXPECT_EQ(KSideBytes(Format("int4"), 64, 80).params, 64u * 4);
  EXPECT_EQ(KSideBytes(Format("kivi4"), 64, 192).params, 192u * 4);
  EXPECT_EQ(KSideBytes(Format("fp8_e4m3"), 80, 8).params, 128u);  // one byte a token
}

TEST(KvFormat, LatentBytesPerToken) {
  // kv_lora_rank 512 and 64 of k_rope, which is f16: 128 bytes.
  const auto per_token = [](std::string_view name, uint32_t page_size) {
    const uint64_t bytes = LatentChunkBytes(Format(name), page_size, 512, 64);
    EXPECT_EQ(bytes % page_size, 0u);
    return bytes / page_size;
  };
  for (uint32_t page_size : {64u, 128u}) {
    EXPECT_EQ(per_token("f32", page_size), 2304u);  // k_rope in 32 bits too
    EXPECT_EQ(per_token("f16", page_size), 1152u);
    EXPECT_EQ(per_token("bf16", page_size), 1152u);
    EXPECT_EQ(per_token("int8", page_size), 648u);      // 512 + 4 scales of 2 bytes + 128
    EXPECT_EQ(per_token("fp8_e4m3", page_size), 644u);  // 512 + 4 exponents + 128
  }
  EXPECT_EQ(per_token("tile8", 64), 672u);  // 512 + 2048/64 + 128
  EXPECT_EQ(per_token("tile8", 128), 656u);
  EXPECT_EQ(per_token("tile4", 64), 418u);  // 256 + 2048/64 + 2 + 128
  EXPECT_EQ(per_token("tile4", 128), 402u);
  EXPECT_EQ(per_token("tile6", 64), 384u + 32 + 128);
}

TEST(KvFormat, LatentAttentionTakesTheKFormsOfEightBitsAndTile) {
  std::set<std::string_view> allowed;
  for (const KvFormat& format : KvFormats())
    if (format.is_for_latent) allowed.insert(format.name);
  EXPECT_EQ(allowed, (std::set<std::string_view>{"f32", "f16", "bf16", "fp8_e4m3", "int8", "tile8",
                                                 "tile6", "tile4"}));
}

TEST(KvFormat, SizesAreThoseOfTheEnginesLayout) {
  for (const KvFormat& k : KvFormats())
    for (const KvFormat& v : KvFormats()) {
      if (!k.runs() || !v.runs()) continue;
      for (uint32_t page_size : {16u, 48u, 64u, 80u, 128u})
        for (uint32_t dim_k : {1u, 7u, 8u, 64u, 80u, 192u, 256u, 576u})
          for (uint32_t dim_v : {1u, 9u, 64u, 128u, 200u}) {
            auto layout = MakeKvLayout({.page_size = page_size,
                                        .num_layers = 3,
                                        .num_kv_heads = 2,
                                        .head_dim_k = dim_k,
                                        .head_dim_v = dim_v},
                                       *k.codec, *v.codec);
            ASSERT_TRUE(layout.ok());
            EXPECT_EQ(layout->page_bytes(), 6 * KvChunkBytes(k, v, page_size, dim_k, dim_v));
            EXPECT_EQ(layout->k_codes_offset, KSideBytes(k, page_size, dim_k).params);
            EXPECT_EQ(layout->v_params_offset, KSideBytes(k, page_size, dim_k).total());
          }
    }
}

}  // namespace
}  // namespace quire
