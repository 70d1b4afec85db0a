#include "plan/accelerators.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <vector>

#include "base/errors.h"
#include "base/message_text.h"

namespace quire {
namespace {

// Decimal units, as in the sources. Where a maker gives FLOPS with 2:4 sparsity, half of it.
constexpr Accelerator kAccelerators[] = {
    // NVIDIA T4 data sheet (2019): 16 GB, 320 GB/s, 65 TFLOPS mixed precision.
    {"T4", 16'000'000'000, 320e9, 65e12},
    // NVIDIA A10 data sheet (2021): 24 GB, 600 GB/s, 125 TFLOPS FP16.
    {"A10", 24'000'000'000, 600e9, 125e12},
    // NVIDIA A100 data sheet (2021): 40 GB SXM 1,555 GB/s; 80 GB SXM 2,039 GB/s; 312 TFLOPS BF16.
    {"A100-40GB", 40'000'000'000, 1555e9, 312e12},
    {"A100", 80'000'000'000, 2039e9, 312e12},
    // NVIDIA L4 data sheet (2023): 24 GB, 300 GB/s, 242 TFLOPS FP16 with sparsity.
    {"L4", 24'000'000'000, 300e9, 121e12},
    // NVIDIA L40S data sheet (2023): 48 GB, 864 GB/s, 362 TFLOPS BF16.
    {"L40S", 48'000'000'000, 864e9, 362e12},
    // NVIDIA GA102 whitepaper (2020): RTX 3090, 24 GB, 936 GB/s, 71 TFLOPS FP16 with FP32 sums.
    {"RTX3090", 24'000'000'000, 936e9, 71e12},
    // NVIDIA Ada whitepaper (2022): RTX 4090, 24 GB, 1,008 GB/s, 165.2 TFLOPS FP16 with FP32 sums.
    {"RTX4090", 24'000'000'000, 1008e9, 165.2e12},
    // NVIDIA H100 data sheet (2023): SXM 80 GB, 3.35 TB/s, 1,979 TFLOPS BF16 with sparsity; PCIe
    // 80 GB, 2 TB/s, 1,513 with sparsity.
    {"H100", 80'000'000'000, 3350e9, 989.5e12},
    {"H100-PCIe", 80'000'000'000, 2000e9, 756.5e12},
    // NVIDIA H200 data sheet (2024): 141 GB, 4.8 TB/s, 1,979 TFLOPS BF16 with sparsity.
    {"H200", 141'000'000'000, 4800e9, 989.5e12},
    // NVIDIA DGX B200 data sheet (2024), an eighth of it: 1,440 GB, 64 TB/s; HGX B200: 36 PFLOPS
    // FP16 with sparsity.
    {"B200", 180'000'000'000, 8000e9, 2250e12},
    // AMD Instinct data sheets: MI250X (2021) 128 GB, 3.2 TB/s, 383 TFLOPS; MI300X (2023) 192 GB,
    // 5.3 TB/s, 1,307 TFLOPS; MI325X (2024) 256 GB, 6 TB/s, 1,307 TFLOPS.
    {"MI250X", 128'000'000'000, 3200e9, 383e12},
    {"MI300X", 192'000'000'000, 5300e9, 1307e12},
    {"MI325X", 256'000'000'000, 6000e9, 1307e12},
};

constexpr uint32_t kMostAccelerators = 4096;

bool EqualNames(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

}  // namespace

std::span<const Accelerator> Accelerators() { return kAccelerators; }

StatusOr<AcceleratorSet> ParseAccelerators(std::string_view text) {
  AcceleratorSet set{.kind = nullptr, .count = 1};
  std::string_view name = text;
  uint32_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error == std::errc() && end != text.data() + text.size() && (*end == 'x' || *end == 'X')) {
    set.count = count;
    name.remove_prefix(static_cast<size_t>(end - text.data()) + 1);
  }
  for (const Accelerator& kind : kAccelerators)
    if (EqualNames(kind.name, name)) set.kind = &kind;
  if (set.kind != nullptr && set.count >= 1 && set.count <= kMostAccelerators) return set;
  std::vector<std::string_view> names;
  for (const Accelerator& kind : kAccelerators) names.push_back(kind.name);
  return InvalidArgument(
      "'{}' is no set of accelerators: write for example 8xH100, of {}; others "
      "by --memory, --bandwidth and --flops",
      Printable(text), fmt::join(names, ", "));
}

}  // namespace quire
