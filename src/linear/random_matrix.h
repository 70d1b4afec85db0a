// Random weight matrices as bytes of a GGUF file, and packed; random activations. For tests and
// the benchmark.
#pragma once

#include <cstring>
#include <random>
#include <vector>

#include "base/half.h"
#include "base/memory.h"
#include "linear/packed_matrix.h"
#include "linear/reference.h"

namespace quire {

// Owns the bytes; every float in them is finite, every code occurs.
class RandomMatrix {
 public:
  RandomMatrix(WeightType type, int num_rows, int num_cols, uint32_t seed)
      : file_{type, num_rows, num_cols, nullptr} {
    std::mt19937 rng(seed);
    std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
    bytes_.resize(static_cast<size_t>(num_rows * RowBytes(type, num_cols)));
    for (std::byte& b : bytes_) b = static_cast<std::byte>(rng());
    const auto block = static_cast<size_t>(BlockBytes(type));
    for (size_t at = 0; at < bytes_.size(); at += block) {
      const float x = uniform(rng);
      switch (type) {
        case WeightType::kF32:
          std::memcpy(&bytes_[at], &x, 4);
          break;
        case WeightType::kBf16:
          std::memcpy(&bytes_[at], reinterpret_cast<const char*>(&x) + 2, 2);
          break;
        case WeightType::kF16:
          PutHalf(at, x);
          break;
        case WeightType::kMxfp4:  // any exponent is finite; near 1, so that sums are
          bytes_[at] = static_cast<std::byte>(120 + rng() % 8);
          break;
        case WeightType::kQ4_1:
        case WeightType::kQ5_1:
          PutHalf(at, x / 50);
          PutHalf(at + 2, uniform(rng) / 4);
          break;
        case WeightType::kQ2K:
          PutHalf(at + 80, x / 20);
          PutHalf(at + 82, uniform(rng) / 40);
          break;
        case WeightType::kQ3K:
          PutHalf(at + 108, x / 100);
          break;
        case WeightType::kQ4K:
        case WeightType::kQ5K:
          PutHalf(at, x / 500);
          PutHalf(at + 2, uniform(rng) / 100);
          break;
        case WeightType::kQ6K:
          PutHalf(at + 208, x / 2000);
          break;
        case WeightType::kIq4Xs:
          PutHalf(at, x / 2000);
          break;
        default:
          PutHalf(at, x / 50);
      }
    }
    file_.bytes = bytes_.data();
    auto memory = AnonymousMemory::Reserve(
        static_cast<size_t>(PackedMatrix::PackedBytes(type, num_rows, num_cols)));
    memory_ = std::move(*memory);
    packed_ = PackedMatrix(type, num_rows, num_cols, memory_.data());
    packed_.PackRows(0, num_rows, bytes_.data());
  }

  const FileMatrix& file() const { return file_; }
  const PackedMatrix& packed() const { return packed_; }
  size_t packed_bytes() const { return memory_.size(); }

 private:
  void PutHalf(size_t at, float x) {
    const uint16_t half = FloatToHalf(x);
    std::memcpy(&bytes_[at], &half, 2);
  }

  std::vector<std::byte> bytes_;
  FileMatrix file_;
  AnonymousMemory memory_;
  PackedMatrix packed_;
};

// Rows of about unit size, with some zero blocks and some large values.
inline std::vector<float> RandomRows(int num_rows, int num_cols, uint32_t seed) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(static_cast<size_t>(num_rows) * static_cast<size_t>(num_cols));
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = normal(rng);
    if (i / 32 % 11 == 5) x[i] = 0;
    if (rng() % 97 == 0) x[i] *= 30;
  }
  return x;
}

}  // namespace quire
