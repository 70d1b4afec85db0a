// How fast the products are, against what this machine can do in the same run.
//
//   M = 1   weights beyond the caches; `roof` is a plain read of the same bytes
//   M >= 8  GOP/s; `peak` is a loop of the path's integer multiply and add in registers alone
//
// One thread, thread CPU time, best of several. Usage: linear_bench [set] [seconds a row]
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "linear/linear_bench.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include "linear/byte_products-inl.h"

#ifndef QUIRE_LINEAR_BENCH_TABLE_
#define QUIRE_LINEAR_BENCH_TABLE_
namespace quire {
struct Ceilings {
  int (*read)(const std::byte* p, size_t size_bytes);  // a sum, so that it is not left out
  int (*byte_products)(int rounds);                    // kProducts sets of 64 bytes a round
  int (*word_products)(int rounds);
};
inline constexpr int kProducts = 8;
}  // namespace quire
#endif

HWY_BEFORE_NAMESPACE();
namespace quire {
namespace HWY_NAMESPACE {

int FirstLane(const Lanes& a) {
  alignas(64) int x[16];
  StoreLanes(a, x);
  return x[0];
}

int Read(const std::byte* p, size_t size_bytes) {
  Lanes sum[4];
  for (Lanes& s : sum) s = LoadLanes(p);
  for (size_t at = 0; at + 256 <= size_bytes; at += 256) {
    for (size_t i = 0; i < 4; ++i) {
      const Lanes x = LoadLanes(p + at + 64 * i);
#if HWY_TARGET == HWY_SCALAR
      for (size_t j = 0; j < 64; ++j) sum[i].bytes[j] ^= x.bytes[j];
#elif HWY_TARGET == HWY_AVX2
      for (size_t j = 0; j < 2; ++j) sum[i].v[j] = _mm256_xor_si256(sum[i].v[j], x.v[j]);
#else
      sum[i].v[0] = _mm512_xor_si512(sum[i].v[0], x.v[0]);
#endif
    }
  }
  int total = 0;
  for (const Lanes& s : sum) total ^= FirstLane(s);
  return total;
}

template <bool kWords>
int Products(int rounds) {
  constexpr size_t kSums = kProducts / 2;
  const uint32_t ones = 0x01010101u;
  Lanes sum[kSums];
  alignas(64) uint8_t bytes[64] = {1, 2, 3};
  Lanes w = LoadLanes(bytes);
  for (Lanes& s : sum) s = w;
  const Four x = BroadcastFour(&ones);
  for (int i = 0; i < rounds; ++i) {
    HWY_UNROLL(2)
    for (int repeat = 0; repeat < 2; ++repeat) {
#if HWY_TARGET != HWY_SCALAR
      for (size_t j = 0; j < kVecs; ++j) QUIRE_KEEP(w.v[j]);
#endif
      HWY_UNROLL(4)
      for (size_t j = 0; j < kSums; ++j) {
        if (kWords)
          AddWordProducts(sum[j], w, x, false);
        else
          AddByteProducts(sum[j], w, x, false);
      }
    }
  }
  int total = 0;
  for (const Lanes& s : sum) total ^= FirstLane(s);
  return total;
}

Ceilings CeilingsHere() {
  return {.read = Read, .byte_products = Products<false>, .word_products = Products<true>};
}

}  // namespace HWY_NAMESPACE
}  // namespace quire
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>

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

Ceilings CeilingsOf(InstructionSet set) {
  switch (set) {
    case InstructionSet::kPortable:
      return N_SCALAR::CeilingsHere();
    case InstructionSet::kAvx2:
      return N_AVX2::CeilingsHere();
    case InstructionSet::kAvx512:
      return N_AVX3::CeilingsHere();
  }
  return N_SCALAR::CeilingsHere();
}

int sink = 0;  // results of the ceilings

// Operations a second of the register loop; a set of 64 bytes is 64 (bytes) or 32 (words) products.
double Peak(const Ceilings& ceilings, bool words, double seconds) {
  constexpr int kRounds = 20000;
  const double time = Best(seconds, [&] {
    sink ^= words ? ceilings.word_products(kRounds) : ceilings.byte_products(kRounds);
  });
  return 2.0 * kRounds * kProducts * (words ? 32 : 64) / time;
}

void BenchShape(WeightType type, int n, int k, InstructionSet set, double seconds) {
  constexpr size_t kBeyondCaches = size_t{160} << 20;
  const LinearKernels& kernels = GetLinearKernels(set);
  const Ceilings ceilings = CeilingsOf(set);
  const RandomMatrix matrix(type, n, k, 1);
  const PackedMatrix& packed = matrix.packed();
  const size_t bytes = matrix.packed_bytes();
  const size_t copies = kBeyondCaches / bytes + 1;
  auto pool = AnonymousMemory::Reserve(copies * bytes);
  if (!pool.ok()) return;
  for (size_t i = 0; i < copies; ++i) std::memcpy(pool->data() + i * bytes, packed.panel(0), bytes);

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
        roof =
            std::min(roof, Best(0, [&] { sink ^= ceilings.read(pool->data(), copies * bytes); }));
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
          "{:5} {:6} x {:5}  M {:4}  {:7.1f} GB/s   {:.2f} of the read roof {:.1f}, in cache "
          "{:.1f}\n",
          WeightTypeName(type), n, k, m, static_cast<double>(copies * bytes) / best / 1e9,
          roof / best, static_cast<double>(copies * bytes) / roof / 1e9,
          static_cast<double>(bytes) / hot / 1e9);
      continue;
    }
    const double peak = Peak(ceilings, type == WeightType::kQ8_0, seconds / 4);
    const double time = Best(seconds, [&] {
      kernels.multiply(packed, x, 0, m, 0, packed.num_panels(), out.data(), n, {});
    });
    fmt::print("{:5} {:6} x {:5}  M {:4}  {:7.1f} GOP/s  {:.2f} of the peak {:.1f}\n",
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
  for (WeightType type : {WeightType::kQ8_0, WeightType::kQ4_0, WeightType::kQ4_1}) {
    BenchShape(type, 576, 576, *set, seconds);
    BenchShape(type, 1536, 576, *set, seconds);
    BenchShape(type, 576, 1536, *set, seconds);
    BenchShape(type, 49152, 576, *set, seconds);
  }
  BenchRows(*set, seconds);
  return sink == 12345 ? 1 : 0;
}

}  // namespace
}  // namespace quire

int main(int argc, char** argv) { return quire::Main(argc, argv); }
#endif  // HWY_ONCE
