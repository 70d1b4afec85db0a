// How fast the attention kernels are (attention/measure.h), without a model.
//
//     attention_bench [avx2 | avx512 [threads [words that a test's name must have ...]]]
#include <fmt/format.h>

#include <cstdlib>
#include <string>

#include "attention/measure.h"

namespace quire {
namespace {

int Main(int argc, char** argv) {
  const auto set = ChooseInstructionSet(argc > 1 ? std::optional<std::string_view>(argv[1])
                                                 : std::optional<std::string_view>());
  if (!set.ok()) {
    fmt::print(stderr, "{}\n", set.status().message());
    return 2;
  }
  AttentionMeter meter(*set, argc > 2 ? std::max(1, std::atoi(argv[2])) : 1);
  for (const AttentionTest& test : AttentionTests()) {
    const std::string name = NameOf(test);
    bool wanted = true;
    for (int i = 3; i < argc; ++i)
      wanted = wanted && (name + " ").find(std::string(argv[i]) + " ") != std::string::npos;
    if (!wanted) continue;
    const auto speed = meter.Measure(test, 9);
    if (!speed.ok()) {
      fmt::print(stderr, "{}\n", speed.status().message());
      return 1;
    }
    fmt::print("{:6} {:44} {:7.2f} ns a key  {:.3f} of the FMA peak", InstructionSetName(*set),
               name, speed->ns_per_key, speed->of_fma_peak);
    if (test.in_memory)
      fmt::print("  {:.3f} of the read roof ({:.1f} GB/s)", speed->of_read_roof,
                 speed->read_bytes_per_second * 1e-9);
    fmt::print("\n");
  }
  return 0;
}

}  // namespace
}  // namespace quire

int main(int argc, char** argv) { return quire::Main(argc, argv); }
