#include "linear/measure.h"

#include <time.h>

#include <algorithm>
#include <cstring>

#include "base/median.h"
#include "linear/random_matrix.h"

namespace quire {
namespace {

constexpr size_t kPoolBytes = size_t{192} << 20;
constexpr int64_t kPeakRounds = 20'000;
constexpr int kPanelsPerItem = 4;
// Multiply-adds of one sample: short, so that some samples are free of neighbours.
constexpr double kSampleMacs = 5e8;

double SecondsOf(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// Types whose codes need eight bits: AVX2 multiplies them as s16.
bool TakesWords(WeightType type) {
  return type == WeightType::kQ8_0 || type == WeightType::kIq4Nl || type == WeightType::kIq4Xs;
}

}  // namespace

std::string NameOf(const ProductTest& test) {
  return "product " + std::string(WeightTypeName(test.type)) +
         " M=" + std::to_string(test.num_rows) + (test.form == ActivationForm::kF32 ? " f32" : "");
}

std::vector<ProductTest> ProductTests(bool all) {
  std::vector<ProductTest> tests;
  const auto add = [&](WeightType type, ActivationForm form) {
    for (const int num_rows : {1, 8, 64})
      tests.push_back({.type = type, .num_rows = num_rows, .form = form});
  };
  if (!all) {
    for (const WeightType type : {WeightType::kQ8_0, WeightType::kQ4_0, WeightType::kQ4_1,
                                  WeightType::kQ4K, WeightType::kQ6K})
      add(type, ActivationForm::kInt8);
    return tests;
  }
  for (const WeightType type : AllWeightTypes()) {
    if (TakesInt8(type)) add(type, ActivationForm::kInt8);
    add(type, ActivationForm::kF32);
  }
  return tests;
}

ProductMeter::ProductMeter(InstructionSet set, int num_threads)
    : kernels_(GetLinearKernels(set)), ceilings_(GetCeilings(set)), team_(num_threads) {}

template <class Job>
double ProductMeter::Seconds(Job&& job) {
  const clockid_t clock = team_.num_threads() == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
  const double start = SecondsOf(clock);
  team_.Run(job);
  return SecondsOf(clock) - start;
}

// Multiply-adds a second of the register loop of the type's path, on all threads.
double ProductMeter::PeakOf(const ProductTest& test) {
  auto loop = ceilings_.fma;
  int64_t per_round = ceilings_.fma_per_round;
  if (test.form == ActivationForm::kInt8 && TakesInt8(test.type)) {
    const bool words = TakesWords(test.type);
    loop = words ? ceilings_.word_products : ceilings_.byte_products;
    per_round = words ? ceilings_.word_products_per_round : ceilings_.byte_products_per_round;
  }
  double best = 1;
  for (int i = 0; i < 3; ++i) best = std::min(best, Seconds([&](int) { loop(kPeakRounds); }));
  return static_cast<double>(kPeakRounds * per_round * team_.num_threads()) / best;
}

double ProductMeter::ReadBytesPerSecond(size_t size_bytes) {
  constexpr size_t kPiece = size_t{1} << 18;
  const auto num_pieces = static_cast<uint32_t>(size_bytes / kPiece);
  return static_cast<double>(num_pieces * kPiece) / Seconds([&](int) {
           team_.ForEach(num_pieces,
                         [&](uint32_t i) { ceilings_.read(pool_.data() + i * kPiece, kPiece); });
         });
}

StatusOr<ProductSpeed> ProductMeter::Measure(const ProductTest& test, int repetitions) {
  const RandomMatrix matrix(test.type, test.num_outputs, test.num_cols, 1);
  const size_t bytes = matrix.packed_bytes();
  const size_t num_copies = std::max<size_t>(2, kPoolBytes / bytes);
  if (pool_.size() < num_copies * bytes) {
    QUIRE_ASSIGN_OR_RETURN(pool_, AnonymousMemory::Reserve(num_copies * bytes + 4096));
  }
  std::vector<PackedMatrix> copies;
  for (size_t i = 0; i < num_copies; ++i) {
    std::memcpy(pool_.data() + i * bytes, matrix.packed().panel(0), bytes);
    copies.emplace_back(test.type, test.num_outputs, test.num_cols, pool_.data() + i * bytes);
  }

  const auto rows = RandomRows(test.num_rows, test.num_cols, 2);
  Int8Buffer buffer(test.num_rows, test.num_cols);
  Activations x{.num_rows = test.num_rows,
                .num_cols = test.num_cols,
                .rows = rows.data(),
                .row_stride = test.num_cols,
                .int8 = {}};
  if (test.form == ActivationForm::kInt8 && TakesInt8(test.type)) {
    x.int8 = buffer.Rows(test.num_rows, test.num_cols);
    kernels_.quantise_rows(rows.data(), test.num_cols, 0, test.num_rows, x.int8);
  }
  std::vector<float> out(static_cast<size_t>(test.num_rows) *
                         static_cast<size_t>(test.num_outputs));

  const double macs = 1.0 * test.num_rows * test.num_outputs * test.num_cols;
  // At least a quarter of the pool, so that no sample finds its weights in a cache.
  const size_t num_products =
      std::clamp(static_cast<size_t>(kSampleMacs / macs), num_copies / 4 + 1, num_copies);
  size_t next = 0;
  const auto sample = [&] {
    const size_t first = next;
    next = (next + num_products) % num_copies;
    return Seconds([&](int) {
      for (size_t i = 0; i < num_products; ++i) {
        const PackedMatrix& copy = copies[(first + i) % num_copies];
        const int panels = copy.num_panels();
        const auto num_items =
            static_cast<uint32_t>((panels + kPanelsPerItem - 1) / kPanelsPerItem);
        team_.ForEach(num_items, [&](uint32_t item) {
          const int begin = static_cast<int>(item) * kPanelsPerItem;
          kernels_.multiply(copy, x, 0, test.num_rows, begin,
                            std::min(begin + kPanelsPerItem, panels), out.data(), test.num_outputs,
                            {});
        });
      }
    });
  };

  double best = 1e9, best_peak = 0;
  std::vector<double> roofs, ratios;
  for (int i = 0; i < repetitions; ++i) {
    best_peak = std::max(best_peak, PeakOf(test));
    const double roof = ReadBytesPerSecond(num_copies * bytes);
    const double seconds = sample() / static_cast<double>(num_products);
    best = std::min(best, seconds);
    roofs.push_back(roof);
    ratios.push_back(static_cast<double>(bytes) / seconds / roof);
  }
  ProductSpeed speed;
  speed.macs_per_second = macs / best;
  speed.of_peak = macs / best / best_peak;
  speed.of_read_roof = Median(ratios);
  speed.read_bytes_per_second = Median(roofs);

  PackedMatrix target(test.type, test.num_outputs, test.num_cols, pool_.data());
  const double start = SecondsOf(CLOCK_THREAD_CPUTIME_ID);
  target.PackRows(0, test.num_outputs, matrix.file().bytes);
  speed.pack_bytes_per_second =
      static_cast<double>(test.num_outputs * RowBytes(test.type, test.num_cols)) /
      (SecondsOf(CLOCK_THREAD_CPUTIME_ID) - start);
  return speed;
}

}  // namespace quire
