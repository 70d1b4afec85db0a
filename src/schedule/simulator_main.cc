// Long runs of the simulator: schedule_simulator [STEPS [SEEDS [FIRST_SEED]]], by default 100,000
// steps for each of 200 seeds. Prints a line for each seed; exit code 1 at the first finding.
#include <cstdio>
#include <cstdlib>

#include "schedule/simulator.h"

int main(int argc, char** argv) {
  const auto argument = [&](int i, uint64_t otherwise) {
    return i < argc ? std::strtoull(argv[i], nullptr, 10) : otherwise;
  };
  const uint64_t num_steps = argument(1, 100'000), num_seeds = argument(2, 200);
  const uint64_t first = argument(3, 0);
  for (uint64_t seed = first; seed < first + num_seeds; ++seed) {
    quire::Simulator simulator(quire::RandomOptions(seed));
    const quire::Status status = simulator.RunRandom(num_steps);
    std::printf("seed %llu: %llu requests, %llu tokens, %llu preemptions, %llu cold starts: %s\n",
                static_cast<unsigned long long>(seed),
                static_cast<unsigned long long>(simulator.num_records() - 1),
                static_cast<unsigned long long>(simulator.num_computed()),
                static_cast<unsigned long long>(simulator.num_preemptions()),
                static_cast<unsigned long long>(simulator.num_cold_starts()),
                status.ok() ? "ok" : status.message().data());
    std::fflush(stdout);
    if (!status.ok()) return 1;
  }
  return 0;
}
