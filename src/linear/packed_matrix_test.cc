#include "linear/packed_matrix.h"

#include <gtest/gtest.h>

#include <vector>

#include "linear/random_matrix.h"

namespace quire {
namespace {

std::vector<WeightType> SupportedTypes() {
  std::vector<WeightType> types;
  for (WeightType type : AllWeightTypes())
    if (IsSupported(type)) types.push_back(type);
  return types;
}

TEST(PackedMatrix, DequantisedRowsAreTheFilesValues) {
  for (WeightType type : SupportedTypes()) {
    for (int num_rows : {1, 16, 50}) {
      const RandomMatrix matrix(type, num_rows, 96, 7);
      std::vector<float> row(96);
      for (int n = 0; n < num_rows; ++n) {
        matrix.packed().DequantiseRow(n, row.data());
        for (int k = 0; k < 96; ++k)
          ASSERT_EQ(row[static_cast<size_t>(k)], static_cast<float>(WeightAt(matrix.file(), n, k)))
              << WeightTypeName(type) << " row " << n << " k " << k;
      }
    }
  }
}

// Blocks written out by hand, so that the reference itself has something to agree with.
TEST(PackedMatrix, HandWrittenBlocksHaveTheirValues) {
  std::vector<std::byte> q41(20);
  q41[1] = std::byte{0x38};                                // d = 0x3800 = 0.5
  q41[3] = std::byte{0xC0};                                // m = 0xC000 = -2
  q41[4] = std::byte{0xF1};                                // element 0: 1, element 16: 15
  q41[19] = std::byte{0x2A};                               // element 15: 10, element 31: 2
  std::vector<std::byte> q40(q41.begin(), q41.end() - 2);  // d, then the bytes from 2 on as codes
  std::vector<std::byte> q80(34);
  q80[1] = std::byte{0x38};
  q80[2] = std::byte{0x80};   // element 0: -128
  q80[33] = std::byte{0x7F};  // element 31: 127
  alignas(64) std::byte memory[544];
  float x[32];

  PackedMatrix a(WeightType::kQ4_1, 1, 32, memory);
  a.PackRows(0, 1, q41.data());
  a.DequantiseRow(0, x);
  EXPECT_EQ(x[0], -1.5f);
  EXPECT_EQ(x[16], 5.5f);
  EXPECT_EQ(x[15], 3.0f);
  EXPECT_EQ(x[31], -1.0f);
  EXPECT_EQ(x[1], -2.0f);

  PackedMatrix b(WeightType::kQ4_0, 1, 32, memory);
  b.PackRows(0, 1, q40.data());
  b.DequantiseRow(0, x);
  EXPECT_EQ(x[1], -4.0f);  // byte 0xC0: low nibble 0, high nibble 12
  EXPECT_EQ(x[17], 2.0f);
  EXPECT_EQ(x[2], -3.5f);  // byte 0xF1
  EXPECT_EQ(x[18], 3.5f);

  PackedMatrix c(WeightType::kQ8_0, 1, 32, memory);
  c.PackRows(0, 1, q80.data());
  c.DequantiseRow(0, x);
  EXPECT_EQ(x[0], -64.0f);
  EXPECT_EQ(x[31], 63.5f);
  EXPECT_EQ(x[30], 0.0f);
}

TEST(PackedMatrix, PackingInPiecesFromUnalignedBytesEqualsPackingAtOnce) {
  for (WeightType type : SupportedTypes()) {
    const RandomMatrix matrix(type, 50, 64, 11);
    const auto row_bytes = static_cast<size_t>(RowBytes(type, 64));
    std::vector<std::byte> shifted(row_bytes * 50 + 1);
    std::copy_n(matrix.file().bytes, row_bytes * 50, shifted.begin() + 1);
    auto memory = AnonymousMemory::Reserve(matrix.packed_bytes());
    ASSERT_TRUE(memory.ok());
    PackedMatrix pieces(type, 50, 64, memory->data());
    pieces.PackRows(32, 18, shifted.data() + 1 + 32 * row_bytes);
    pieces.PackRows(0, 16, shifted.data() + 1);
    pieces.PackRows(16, 16, shifted.data() + 1 + 16 * row_bytes);
    EXPECT_EQ(std::memcmp(pieces.panel(0), matrix.packed().panel(0), matrix.packed_bytes()), 0);
  }
}

TEST(PackedMatrix, SizeIsTheFilesSizeWithTheLastPanelFilled) {
  for (WeightType type : SupportedTypes()) {
    EXPECT_EQ(PackedMatrix::PackedBytes(type, 48, 64), 48 * RowBytes(type, 64));
    EXPECT_EQ(PackedMatrix::PackedBytes(type, 33, 64), 48 * RowBytes(type, 64));
    EXPECT_EQ(PackedMatrix::PackedBytes(type, 1, 64) % 32, 0);
  }
  EXPECT_EQ(PackedMatrix::PackedBytes(WeightType::kF16, 16, 5), 160);
}

}  // namespace
}  // namespace quire
