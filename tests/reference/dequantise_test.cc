#include "reference/dequantise.h"

#include <gtest/gtest.h>

#include <cmath>

namespace quire {
namespace {

std::vector<std::byte> Bytes(std::initializer_list<int> values) {
  std::vector<std::byte> bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value & 255));
  return bytes;
}

// A block of 32 with the given front (scale, minimum) and codes 0x10, 0x32, ... as its nibbles.
std::vector<std::byte> NibbleBlock(std::initializer_list<int> front) {
  std::vector<std::byte> block = Bytes(front);
  for (int i = 0; i < 16; ++i) block.push_back(static_cast<std::byte>(i | (15 - i) << 4));
  return block;
}

TEST(Dequantise, HalvesOfEveryKind) {
  // 1, -2, the largest, the smallest, the smallest normal one.
  const auto bytes = Bytes({0x00, 0x3C, 0x00, 0xC0, 0xFF, 0x7B, 0x01, 0x00, 0x00, 0x04});
  const auto values = Dequantise(WeightType::kF16, bytes, 5);
  ASSERT_TRUE(values.ok());
  EXPECT_EQ(*values, (std::vector<double>{1, -2, 65504, 0x1p-24, 0x1p-14}));
}

TEST(Dequantise, BFloat16IsTheUpperHalf) {
  const auto values = Dequantise(WeightType::kBf16, Bytes({0x80, 0x3F, 0x49, 0xC0}), 2);
  ASSERT_TRUE(values.ok());
  EXPECT_EQ(*values, (std::vector<double>{1, -3.140625}));
}

TEST(Dequantise, EightBitCodesAreSigned) {
  std::vector<std::byte> block = Bytes({0x00, 0x38});  // 0.5
  for (int i = 0; i < 32; ++i) block.push_back(static_cast<std::byte>(i * 8 - 128));
  const auto values = Dequantise(WeightType::kQ8_0, block, 32);
  ASSERT_TRUE(values.ok());
  for (int i = 0; i < 32; ++i) EXPECT_EQ((*values)[static_cast<size_t>(i)], 0.5 * (i * 8 - 128));
}

TEST(Dequantise, FourBitCodesAreLowNibblesThenHighOnes) {
  const auto plain = Dequantise(WeightType::kQ4_0, NibbleBlock({0x00, 0xC0}), 32);  // -2
  const auto with_minimum =
      Dequantise(WeightType::kQ4_1, NibbleBlock({0x00, 0xC0, 0x00, 0x3C}), 32);  // -2, 1
  ASSERT_TRUE(plain.ok() && with_minimum.ok());
  for (int i = 0; i < 32; ++i) {
    const int code = i < 16 ? i : 31 - i;
    EXPECT_EQ((*plain)[static_cast<size_t>(i)], -2.0 * (code - 8)) << i;
    EXPECT_EQ((*with_minimum)[static_cast<size_t>(i)], -2.0 * code + 1) << i;
  }
}

TEST(Dequantise, RefusesShortBytes) {
  EXPECT_FALSE(Dequantise(WeightType::kQ4_1, NibbleBlock({0, 0}), 32).ok());
  EXPECT_FALSE(Dequantise(WeightType::kQ8_0, NibbleBlock({0, 0}), 31).ok());
  EXPECT_FALSE(Dequantise(WeightType::kQ6K, std::vector<std::byte>(209), 256).ok());
}

}  // namespace
}  // namespace quire
