// How fast products (linear/measure.h) and row operations are, without a model.
//
//     linear_bench [portable | avx2 | avx512 [threads [words that a test's name must have ...]]]
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "linear/measure.h"
#include "linear/random_matrix.h"

namespace quire {
namespace {

constexpr int kRepetitions = 9;

double CpuSeconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// The least time of one call, tried for `seconds` and at least three times.
template <class F>
double Best(double seconds, F&& f) {
  double best = 1e30;
  const double start = CpuSeconds();
  for (int i = 0; i < 3 || CpuSeconds() - start < seconds; ++i) {
    const double before = CpuSeconds();
    f();
    best = std::min(best, CpuSeconds() - before);
  }
  return best;
}

void BenchRows(InstructionSet set) {
  constexpr double kSeconds = 0.1;
  constexpr int kCols = 576, kRows = 64;
  const LinearKernels& kernels = GetLinearKernels(set);
  auto x = RandomRows(kRows, kCols, 3);
  const auto y = RandomRows(kRows, kCols, 4);
  Int8Buffer buffer(kRows, kCols);
  const Int8Rows codes = buffer.Rows(kRows, kCols);
  std::vector<float> out(x.size());
  const auto print = [&](const char* name, auto&& f) {
    fmt::print("{:14} {:.3f} ns a value\n", name, Best(kSeconds, f) / (kRows * kCols) * 1e9);
  };
  print("quantise_rows", [&] { kernels.quantise_rows(x.data(), kCols, 0, kRows, codes); });
  print("rms_norm", [&] {
    for (int m = 0; m < kRows; ++m)
      kernels.rms_norm(x.data() + m * kCols, y.data(), kCols, 1e-5f, out.data() + m * kCols);
  });
  print("rope", [&] {
    for (int m = 0; m < kRows; ++m)
      kernels.rope(out.data() + m * kCols, 9, 64, 64, y.data(), y.data() + 32,
                   RopePairs::kInterleaved);
  });
  print("silu_multiply",
        [&] { kernels.silu_multiply(x.data(), y.data(), out.data(), kRows * kCols); });
}

int Main(int argc, char** argv) {
  const auto set = ChooseInstructionSet(argc > 1 ? std::optional<std::string_view>(argv[1])
                                                 : std::optional<std::string_view>());
  if (!set.ok()) {
    fmt::print(stderr, "{}\n", set.status().message());
    return 2;
  }
  ProductMeter meter(*set, argc > 2 ? std::max(1, std::atoi(argv[2])) : 1);
  for (const ProductTest& test : ProductTests(/*all=*/true)) {
    const std::string name = NameOf(test);
    bool wanted = true;
    for (int i = 3; i < argc; ++i)
      wanted = wanted && (name + " ").find(std::string(argv[i]) + " ") != std::string::npos;
    if (!wanted) continue;
    const auto speed = meter.Measure(test, kRepetitions);
    if (!speed.ok()) {
      fmt::print(stderr, "{}\n", speed.status().message());
      return 1;
    }
    fmt::print(
        "{:8} {:24} {:7.1f} GOP/s  {:.3f} of the peak  {:.3f} of the read roof ({:.1f} GB/s)  "
        "packs {:.1f} GB/s\n",
        InstructionSetName(*set), name, 2e-9 * speed->macs_per_second, speed->of_peak,
        speed->of_read_roof, 1e-9 * speed->read_bytes_per_second,
        1e-9 * speed->pack_bytes_per_second);
  }
  if (argc <= 3) BenchRows(*set);
  return 0;
}

}  // namespace
}  // namespace quire

int main(int argc, char** argv) { return quire::Main(argc, argv); }
