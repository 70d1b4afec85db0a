#include "linear/packed_matrix.h"

#include <gtest/gtest.h>

#include <fstream>
#include <vector>

#include "base/test_data.h"
#include "linear/random_matrix.h"

namespace quire {
namespace {

// Columns that every type has whole blocks of, in more than one group of blocks.
constexpr int kCols = 512;

TEST(PackedMatrix, DequantisedRowsAreTheFilesValues) {
  for (WeightType type : AllWeightTypes()) {
    for (int num_rows : {1, 16, 50}) {
      const RandomMatrix matrix(type, num_rows, kCols, 7);
      std::vector<float> row(kCols);
      for (int n = 0; n < num_rows; ++n) {
        matrix.packed().DequantiseRow(n, row.data());
        for (int k = 0; k < kCols; ++k)
          ASSERT_EQ(row[static_cast<size_t>(k)], static_cast<float>(WeightAt(matrix.file(), n, k)))
              << WeightTypeName(type) << " row " << n << " k " << k;
      }
    }
  }
}

// The file holds random blocks of every quantised type and the values that the `gguf` package gives
// them (tools/make_weight_goldens.py).
TEST(PackedMatrix, ValuesAreThoseOfTheFormatsOwnPackage) {
  std::ifstream file(TestData("weights/blocks.bin"), std::ios::binary);
  ASSERT_TRUE(file.is_open());
  int num_types = 0;
  for (uint32_t head[3]; file.read(reinterpret_cast<char*>(head), sizeof head); ++num_types) {
    const auto type = WeightTypeFromId(head[0]);
    ASSERT_TRUE(type.has_value()) << head[0];
    const auto num_cols = static_cast<int>(head[1]);
    ASSERT_EQ(RowBytes(*type, num_cols), head[2]);
    std::vector<std::byte> blocks(head[2]);
    std::vector<float> want(head[1]), got(head[1]);
    file.read(reinterpret_cast<char*>(blocks.data()), static_cast<std::streamsize>(blocks.size()));
    file.read(reinterpret_cast<char*>(want.data()), static_cast<std::streamsize>(4 * want.size()));
    ASSERT_TRUE(file.good());
    auto memory = AnonymousMemory::Reserve(
        static_cast<size_t>(PackedMatrix::PackedBytes(*type, 1, num_cols)));
    ASSERT_TRUE(memory.ok());
    PackedMatrix matrix(*type, 1, num_cols, memory->data());
    matrix.PackRows(0, 1, blocks.data());
    matrix.DequantiseRow(0, got.data());
    EXPECT_EQ(got, want) << WeightTypeName(*type);
    const FileMatrix reference{*type, 1, num_cols, blocks.data()};
    for (int k = 0; k < num_cols; ++k)
      ASSERT_EQ(static_cast<float>(WeightAt(reference, 0, k)), want[static_cast<size_t>(k)])
          << WeightTypeName(*type) << " k " << k;
  }
  int num_quantised = 0;
  for (WeightType type : AllWeightTypes()) num_quantised += TakesInt8(type);
  EXPECT_EQ(num_types, num_quantised);
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
  for (WeightType type : AllWeightTypes()) {
    const RandomMatrix matrix(type, 50, kCols, 11);
    const auto row_bytes = static_cast<size_t>(RowBytes(type, kCols));
    std::vector<std::byte> shifted(row_bytes * 50 + 1);
    std::copy_n(matrix.file().bytes, row_bytes * 50, shifted.begin() + 1);
    auto memory = AnonymousMemory::Reserve(matrix.packed_bytes());
    ASSERT_TRUE(memory.ok());
    PackedMatrix pieces(type, 50, kCols, memory->data());
    pieces.PackRows(32, 18, shifted.data() + 1 + 32 * row_bytes);
    pieces.PackRows(0, 16, shifted.data() + 1);
    pieces.PackRows(16, 16, shifted.data() + 1 + 16 * row_bytes);
    EXPECT_EQ(std::memcmp(pieces.panel(0), matrix.packed().panel(0), matrix.packed_bytes()), 0);
  }
}

TEST(PackedMatrix, SizeIsTheFilesSizeWithTheLastPanelFilled) {
  for (WeightType type : AllWeightTypes()) {
    const int64_t file = 48 * RowBytes(type, kCols);
    const int64_t packed = PackedMatrix::PackedBytes(type, 48, kCols);
    EXPECT_EQ(PackedMatrix::PackedBytes(type, 33, kCols), packed);
    const bool scales_in_bytes = type == WeightType::kQ4K || type == WeightType::kQ5K ||
                                 type == WeightType::kQ3K || type == WeightType::kIq4Xs;
    if (scales_in_bytes) {
      EXPECT_GT(packed, file) << WeightTypeName(type);
      EXPECT_LE(packed * 1000, file * 1037) << WeightTypeName(type);
    } else {
      EXPECT_EQ(packed, file) << WeightTypeName(type);
    }
  }
  EXPECT_EQ(PackedMatrix::PackedBytes(WeightType::kF16, 16, 5), 160);
}

}  // namespace
}  // namespace quire
