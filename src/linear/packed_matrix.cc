#include "linear/packed_matrix.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "base/half.h"

namespace quire {
namespace {

constexpr int kLanes = PackedMatrix::kPanelRows;

template <class T>
T LoadAs(const std::byte* p) {
  T x;
  std::memcpy(&x, p, sizeof(T));
  return x;
}

// Bytes of a block of 32 in a panel: what stands before the codes, and the codes.
int HeadBytes(WeightType type) { return (type == WeightType::kQ4_1 ? 4 : 2) * kLanes; }
int CodeBytes(WeightType type) { return (type == WeightType::kQ8_0 ? 32 : 16) * kLanes; }

// Elements of T, [16 rows][K] in the file, to [K][16 rows]. Rows that are not there become zero.
template <class T>
void PackElements(const std::byte* rows, int num_rows, int num_cols, std::byte* panel) {
  if (num_rows < kLanes) std::memset(panel, 0, sizeof(T) * kLanes * static_cast<size_t>(num_cols));
  const size_t row_bytes = sizeof(T) * static_cast<size_t>(num_cols);
  T* out = reinterpret_cast<T*>(panel);
  for (int k = 0; k < num_cols; ++k)
    for (int r = 0; r < num_rows; ++r)
      out[static_cast<size_t>(k) * kLanes + static_cast<size_t>(r)] =
          LoadAs<T>(rows + static_cast<size_t>(r) * row_bytes + sizeof(T) * static_cast<size_t>(k));
}

// Blocks of `kHead` f16 numbers and `kFours` times four bytes of codes.
template <int kHead, int kFours>
void PackBlocks(const std::byte* rows, int num_rows, int num_blocks, std::byte* panel) {
  constexpr size_t kFileBytes = 2 * kHead + 4 * kFours;
  constexpr size_t kPanelBytes = kFileBytes * kLanes;
  const size_t row_bytes = kFileBytes * static_cast<size_t>(num_blocks);
  if (num_rows < kLanes) std::memset(panel, 0, kPanelBytes * static_cast<size_t>(num_blocks));
  for (int b = 0; b < num_blocks; ++b, panel += kPanelBytes) {
    for (int r = 0; r < num_rows; ++r) {
      const std::byte* in =
          rows + static_cast<size_t>(r) * row_bytes + static_cast<size_t>(b) * kFileBytes;
      for (int i = 0; i < kHead; ++i) std::memcpy(panel + 2 * (i * kLanes + r), in + 2 * i, 2);
      for (int i = 0; i < kFours; ++i)
        std::memcpy(panel + 2 * kHead * kLanes + 4 * (i * kLanes + r), in + 2 * kHead + 4 * i, 4);
    }
  }
}

}  // namespace

PackedMatrix::PackedMatrix(WeightType type, int num_rows, int num_cols, std::byte* memory)
    : type_(type), num_rows_(num_rows), num_cols_(num_cols), memory_(memory) {
  QUIRE_CHECK(reinterpret_cast<uintptr_t>(memory) % 64 == 0);
  panel_bytes_ = PackedBytes(type, kPanelRows, num_cols);
  QUIRE_CHECK(num_rows >= 1);
}

int64_t PackedMatrix::PackedBytes(WeightType type, int64_t num_rows, int64_t num_cols) {
  QUIRE_CHECK(IsSupported(type) && num_rows >= 0 && num_cols >= 1);
  return (num_rows + kPanelRows - 1) / kPanelRows * kPanelRows * RowBytes(type, num_cols);
}

void PackedMatrix::PackRows(int first_row, int count, const std::byte* gguf_rows) {
  QUIRE_CHECK(first_row >= 0 && count >= 0 && first_row <= num_rows_ - count);
  QUIRE_CHECK(first_row % kPanelRows == 0);
  QUIRE_CHECK(count % kPanelRows == 0 || first_row + count == num_rows_);
  const int64_t row_bytes = RowBytes(type_, num_cols_);
  const int num_blocks = num_cols_ / BlockElements(type_);
  for (int row = first_row; row < first_row + count; row += kPanelRows) {
    const int rows = std::min(kPanelRows, first_row + count - row);
    const std::byte* in = gguf_rows + (row - first_row) * row_bytes;
    std::byte* panel = memory_ + row / kPanelRows * panel_bytes_;
    switch (type_) {
      case WeightType::kF32:
        PackElements<uint32_t>(in, rows, num_cols_, panel);
        break;
      case WeightType::kF16:
      case WeightType::kBf16:
        PackElements<uint16_t>(in, rows, num_cols_, panel);
        break;
      case WeightType::kQ8_0:
        PackBlocks<1, 8>(in, rows, num_blocks, panel);
        break;
      case WeightType::kQ4_0:
        PackBlocks<1, 4>(in, rows, num_blocks, panel);
        break;
      case WeightType::kQ4_1:
        PackBlocks<2, 4>(in, rows, num_blocks, panel);
        break;
      default:
        QUIRE_CHECK(false);
    }
  }
}

void PackedMatrix::DequantiseRow(int row, float* out) const {
  QUIRE_CHECK(row >= 0 && row < num_rows_);
  const int r = row % kPanelRows;
  const std::byte* in = panel(row / kPanelRows);
  switch (type_) {
    case WeightType::kF32:
      for (int64_t k = 0; k < num_cols_; ++k) out[k] = LoadAs<float>(in + 4 * (k * kLanes + r));
      return;
    case WeightType::kF16:
      for (int64_t k = 0; k < num_cols_; ++k)
        out[k] = HalfToFloat(LoadAs<uint16_t>(in + 2 * (k * kLanes + r)));
      return;
    case WeightType::kBf16:
      for (int64_t k = 0; k < num_cols_; ++k)
        out[k] = BFloat16ToFloat(LoadAs<uint16_t>(in + 2 * (k * kLanes + r)));
      return;
    default:
      break;
  }
  const int head = HeadBytes(type_);
  for (int k = 0; k < num_cols_; k += 32, in += head + CodeBytes(type_)) {
    const float d = HalfToFloat(LoadAs<uint16_t>(in + 2 * r));
    const float m =
        type_ == WeightType::kQ4_1 ? HalfToFloat(LoadAs<uint16_t>(in + 2 * (kLanes + r))) : 0.0f;
    for (int i = 0; i < 32; ++i) {
      if (type_ == WeightType::kQ8_0) {
        const int q = LoadAs<int8_t>(in + head + 4 * (i / 4 * kLanes + r) + i % 4);
        out[k + i] = d * static_cast<float>(q);
        continue;
      }
      const int byte = LoadAs<uint8_t>(in + head + 4 * (i % 16 / 4 * kLanes + r) + i % 4);
      const int q = i < 16 ? byte & 15 : byte >> 4;
      out[k + i] = type_ == WeightType::kQ4_0 ? d * static_cast<float>(q - 8)
                                              : d * static_cast<float>(q) + m;  // d q is exact
    }
  }
}

}  // namespace quire
