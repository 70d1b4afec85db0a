// How fast the attention kernels are (attention/measure.h), without a model.
//
//     attention_bench [avx2 | avx512 [threads [words that a test's name must have ...]]]
#include <fmt/format.h>

#include <cstdlib>
#include <string>

#include "attention/cascade_meter.h"
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
  const int num_threads = argc > 2 ? std::max(1, std::atoi(argv[2])) : 1;
  const auto is_wanted = [&](const std::string& name) {
    bool wanted = true;
    for (int i = 3; i < argc; ++i)
      wanted = wanted && (name + " ").find(std::string(argv[i]) + " ") != std::string::npos;
    return wanted;
  };
  for (const CascadeTest& test :
       {CascadeTest{}, CascadeTest{.shared = 16384}, CascadeTest{.num_sequences = 2},
        CascadeTest{.shared = 128}, CascadeTest{.num_kv_heads = 8, .group_size = 1},
        CascadeTest{.num_kv_heads = 2, .group_size = 8, .head_dim = 128},
        CascadeTest{.num_sequences = 256, .shared = 1024}, CascadeTest{.codec = KvCodec::kKivi4},
        CascadeTest{.num_kv_heads = 8, .group_size = 1, .codec = KvCodec::kKivi4},
        CascadeTest{
            .num_kv_heads = 2, .group_size = 8, .head_dim = 128, .codec = KvCodec::kKivi4}}) {
    const std::string name = NameOf(test);
    if (!is_wanted(name)) continue;
    CascadeMeter meter(*set, num_threads);
    const auto speed = meter.Measure(test, 25);
    if (!speed.ok()) {
      fmt::print(stderr, "{}\n", speed.status().message());
      return 1;
    }
    fmt::print(
        "{:6} {:44} {:7.2f} ns a key  {:.3f} of the FMA peak ({:.3f} alone)  {:.2f} times as fast, "
        "{:.1f} times fewer chunks  plan {:.1f} us\n",
        InstructionSetName(*set), name, speed->ns_per_key, speed->of_fma_peak,
        speed->of_fma_peak_alone, speed->speedup, speed->chunks_alone, speed->plan_seconds * 1e6);
  }
  AttentionMeter meter(*set, num_threads);
  for (const AttentionTest& test : AttentionTests()) {
    const std::string name = NameOf(test);
    if (!is_wanted(name)) continue;
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
