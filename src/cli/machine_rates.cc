#include "cli/machine_rates.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "base/ceilings.h"
#include "base/machine.h"
#include "base/memory.h"
#include "base/seconds.h"

namespace quire {
namespace {

constexpr size_t kBytesOfCore = size_t{64} << 20;  // beyond any cache of a core
constexpr double kSeconds = 0.2;                   // of each measurement

// How often in a second all cores together do `work(core)`, which each repeats until time is up.
template <class Work>
double TimesPerSecond(size_t num_cores, Work work) {
  std::atomic<uint64_t> count{0};
  const auto start = std::chrono::steady_clock::now();
  {
    std::vector<std::jthread> threads;
    for (size_t core = 0; core < num_cores; ++core)
      threads.emplace_back([&, core] {
        do {
          work(core);
          count.fetch_add(1, std::memory_order_relaxed);
        } while (SecondsSince(start) < kSeconds);
      });
  }
  return static_cast<double>(count.load()) / SecondsSince(start);
}

}  // namespace

StatusOr<MachineRates> MeasureRates() {
  const Ceilings& ceilings = GetCeilings(AvailableInstructionSets().back());
  const auto num_cores = static_cast<size_t>(UsableCores());
  QUIRE_ASSIGN_OR_RETURN(AnonymousMemory memory,
                         AnonymousMemory::Reserve(num_cores * kBytesOfCore));
  std::memset(memory.data(), 1, memory.size());
  MachineRates rates{.source = "measured on this machine", .mark = Mark::kMeasured};
  rates.bytes_per_second =
      static_cast<double>(kBytesOfCore) * TimesPerSecond(num_cores, [&](size_t core) {
        ceilings.read(memory.data() + core * kBytesOfCore, kBytesOfCore);
      });
  // The fastest kind of multiply-add, so that times stay lower bounds whatever the weights are.
  constexpr int64_t kRounds = 1 << 16;
  const auto measure = [&](void (*run)(int64_t), int64_t per_round) {
    const double times = TimesPerSecond(num_cores, [&](size_t) { run(kRounds); });
    rates.flops = std::max(rates.flops, 2.0 * static_cast<double>(kRounds * per_round) * times);
  };
  measure(ceilings.fma, ceilings.fma_per_round);
  measure(ceilings.byte_products, ceilings.byte_products_per_round);
  measure(ceilings.word_products, ceilings.word_products_per_round);
  return rates;
}

}  // namespace quire
