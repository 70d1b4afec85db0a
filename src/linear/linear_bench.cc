// How fast the products are, against what this machine can do in the same run.
//
//   M = 1   weights beyond the caches; `roof` is a plain read of the same bytes
//   M >= 8  GOP/s; `peak` is a loop of the path's integer multiply and add in registers alone
//
// One thread, thread CPU time, best of several. Usage: linear_bench [set] [seconds a row]
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>

#include "base/ceilings.h"
#include "base/memory.h"
#include "linear/kernels.h"
#include "linear/random_matrix.h"

namespace quire {
namespace {

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

// Operations a second of the register loop of the type's path.
double Peak(const Ceilings& ceilings, WeightType type, double seconds) {
  constexpr int64_t kRounds = 20000;
  const bool words = type == WeightType::kQ8_0 || type == WeightType::kIq4Nl || type == WeightType::kIq4Xs;
  const auto loop = words ? ceilings.word_products : ceilings.byte_products;
  const int64_t per_round =
      words ? ceilings.word_products_per_round : ceilings.byte_products_per_round;
  return 2.0 * static_cast<double>(kRounds * per_round) / Best(seconds, [&] { loop(kRounds); });
}

void BenchShape(WeightType type, int n, int k, InstructionSet set, double seconds) {
  constexpr size_t kBeyondCaches = size_t{160} << 20;
  const LinearKernels& kernels = GetLinearKernels(set);
  const Ceilings& ceilings = GetCeilings(set);
  const RandomMatrix matrix(type, n, k, 1);
  const PackedMatrix& packed = matrix.packed();
  const size_t bytes = matrix.packed_bytes();
  const size_t copies = kBeyondCaches / bytes + 1;
  auto pool = AnonymousMemory::Reserve(copies * bytes);
  if (!pool.ok()) return;
  for (size_t i = 0; i < copies; ++i) std::memcpy(pool->data() + i * bytes, packed.panel(0), bytes);

  PackedMatrix target(type, n, k, pool->data());
  const double pack = Best(seconds, [&] { target.PackRows(0, n, matrix.file().bytes); });
  fmt::print("{:6} {:6} x {:5}  pack    {:7.2f} GB/s of file\n", WeightTypeName(type), n, k,
             static_cast<double>(n * RowBytes(type, k)) / pack / 1e9);

  for (int m : {1, 8, 64, 512}) {
    if (m == 512 && n > 2048) continue;
    const auto rows = RandomRows(m, k, 2);
    Int8Buffer buffer(m, k);
    const Activations x{
        .num_rows = m, .num_cols = k, .rows = rows.data(), .row_stride = k, .int8 = buffer.Rows(k)};
    kernels.quantise_rows(rows.data(), k, 0, m, x.int8);
    std::vector<float> out(static_cast<size_t>(m) * static_cast<size_t>(n));
    const double ops = 2.0 * m * n * k;
    if (m == 1) {
      double best = 1e30, roof = 1e30;
      for (int repeat = 0; repeat < 5; ++repeat) {
        roof = std::min(roof,
                        Best(0, [&] { ceilings.read(pool->data(), copies * bytes / 256 * 256); }));
        best =
            std::min(best, Best(0, [&] {
                       for (size_t i = 0; i < copies; ++i) {
                         const PackedMatrix copy(type, n, k, pool->data() + i * bytes);
                         kernels.multiply(copy, x, 0, 1, 0, copy.num_panels(), out.data(), n, {});
                       }
                     }));
      }
      const double hot = Best(seconds, [&] {
        kernels.multiply(packed, x, 0, 1, 0, packed.num_panels(), out.data(), n, {});
      });
      fmt::print(
          "{:6} {:6} x {:5}  M {:4}  {:7.1f} GB/s   {:.2f} of the read roof {:.1f}, in cache "
          "{:.1f}\n",
          WeightTypeName(type), n, k, m, static_cast<double>(copies * bytes) / best / 1e9,
          roof / best, static_cast<double>(copies * bytes) / roof / 1e9,
          static_cast<double>(bytes) / hot / 1e9);
      continue;
    }
    const double peak = Peak(ceilings, type, seconds / 4);
    const double time = Best(seconds, [&] {
      kernels.multiply(packed, x, 0, m, 0, packed.num_panels(), out.data(), n, {});
    });
    fmt::print("{:6} {:6} x {:5}  M {:4}  {:7.1f} GOP/s  {:.2f} of the peak {:.1f}\n",
               WeightTypeName(type), n, k, m, ops / time / 1e9, ops / time / peak, peak / 1e9);
  }
}

void BenchRows(InstructionSet set, double seconds) {
  constexpr int kCols = 576, kRows = 64;
  const LinearKernels& kernels = GetLinearKernels(set);
  auto x = RandomRows(kRows, kCols, 3);
  const auto y = RandomRows(kRows, kCols, 4);
  Int8Buffer buffer(kRows, kCols);
  const Int8Rows codes = buffer.Rows(kCols);
  std::vector<float> out(x.size());
  const auto print = [&](const char* name, auto&& f) {
    fmt::print("{:14} {:.3f} ns a value\n", name, Best(seconds, f) / (kRows * kCols) * 1e9);
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
  const double seconds = argc > 2 ? std::atof(argv[2]) : 0.2;
  fmt::print("{}, one thread\n", InstructionSetName(*set));
  for (WeightType type : AllWeightTypes()) {
    if (!TakesInt8(type)) continue;
    BenchShape(type, 1024, 1536, *set, seconds);
  }
  BenchRows(*set, seconds);
  return 0;
}

}  // namespace
}  // namespace quire

int main(int argc, char** argv) { return quire::Main(argc, argv); }
