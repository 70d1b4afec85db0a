#include "linear/packed_matrix.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "base/half.h"
#include "linear/panel_blocks.h"

namespace quire {
namespace {

constexpr int kLanes = PackedMatrix::kPanelRows;

template <class T>
T LoadAs(const std::byte* p) {
  T x;
  std::memcpy(&x, p, sizeof(T));
  return x;
}

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

// Lanes that are not there become zero.
void PackBlocks(WeightType type, const std::byte* rows, int num_rows, int num_cols,
                int64_t panel_bytes, std::byte* panel) {
  if (num_rows < kLanes) std::memset(panel, 0, static_cast<size_t>(panel_bytes));
  const int64_t row_bytes = RowBytes(type, num_cols);
  for (int r = 0; r < num_rows; ++r)
    WriteLane(type, rows + r * row_bytes, num_cols / kPanelBlock, r, panel);
}

}  // namespace

PackedMatrix::PackedMatrix(WeightType type, int num_rows, int num_cols, std::byte* memory)
    : type_(type), num_rows_(num_rows), num_cols_(num_cols), memory_(memory) {
  QUIRE_CHECK(reinterpret_cast<uintptr_t>(memory) % 64 == 0);
  panel_bytes_ = PackedBytes(type, kPanelRows, num_cols);
  QUIRE_CHECK(num_rows >= 1);
}

int64_t PackedMatrix::PackedBytes(WeightType type, int64_t num_rows, int64_t num_cols) {
  QUIRE_CHECK(num_rows >= 0 && num_cols >= 1);
  const int64_t num_panels = (num_rows + kPanelRows - 1) / kPanelRows;
  if (!TakesInt8(type)) return num_panels * kPanelRows * RowBytes(type, num_cols);
  QUIRE_CHECK(num_cols % BlockElements(type) == 0);
  const PanelFormat format = PanelFormatOf(type);
  return num_panels * (num_cols / (kPanelBlock * format.blocks)) * format.group_stride();
}

void PackedMatrix::PackRows(int first_row, int count, const std::byte* gguf_rows) {
  QUIRE_CHECK(first_row >= 0 && count >= 0 && first_row <= num_rows_ - count);
  QUIRE_CHECK(first_row % kPanelRows == 0);
  QUIRE_CHECK(count % kPanelRows == 0 || first_row + count == num_rows_);
  const int64_t row_bytes = RowBytes(type_, num_cols_);
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
      default:
        PackBlocks(type_, in, rows, num_cols_, panel_bytes_, panel);
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
  for (int block = 0; block < num_cols_ / kPanelBlock; ++block, out += kPanelBlock) {
    const LaneBlock lane = ReadLane(type_, in, block, r);
    for (int i = 0; i < kPanelBlock; ++i)  // the product is exact
      out[i] = lane.scale[i / 16] * static_cast<float>(lane.code[i]) + lane.min[i / 16];
  }
}

}  // namespace quire
