// ProductMeter: how fast matrix products are, as ratios inside one run: to a streaming read of the
// same weights and to the peak of the multiply-adds that the type's path uses (base/ceilings.h),
// each timed beside the products in every repetition. Figures of different runs must not be
// compared: neighbours and the clock move them by 20 % and more.
//
// The weights are more than any cache holds, as those of a model are.
// For benchmarks. Threads: one caller; the meter has a team of its own.
#pragma once

#include <string>
#include <vector>

#include "base/ceilings.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/threads.h"
#include "linear/kernels.h"

namespace quire {

struct ProductTest {
  WeightType type = WeightType::kQ4_0;
  int num_rows = 1;  // M, of activations
  int num_outputs = 4096;
  int num_cols = 4096;
  ActivationForm form = ActivationForm::kInt8;
};

std::string NameOf(const ProductTest& test);  // such as "product Q4_0 M=1"

// Q8_0, Q4_0, Q4_1, Q4_K and Q6_K, which the goals name, with 1, 8 and 64 rows; `all`: every type
// in both forms.
std::vector<ProductTest> ProductTests(bool all = false);

// Rates of all threads together.
struct ProductSpeed {
  double macs_per_second = 0;        // the best
  double of_peak = 0;                // best over best
  double of_read_roof = 0;           // median of the repetitions' ratios
  double read_bytes_per_second = 0;  // the roof, median
  double pack_bytes_per_second = 0;  // of file, when it is packed; one thread
};

class ProductMeter {
 public:
  ProductMeter(InstructionSet set, int num_threads);

  // kResourceExhausted if there is no memory for the weights (some 256 MiB).
  StatusOr<ProductSpeed> Measure(const ProductTest& test, int repetitions);

 private:
  template <class Job>
  double Seconds(Job&& job);
  double PeakOf(const ProductTest& test);
  double ReadBytesPerSecond(size_t size_bytes);

  const LinearKernels& kernels_;
  const Ceilings& ceilings_;
  ThreadTeam team_;
  AnonymousMemory pool_;
};

}  // namespace quire
