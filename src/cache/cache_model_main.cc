// cache_model --operations N [--seed S]: random operations on tiny caches of all shapes, each one
// checked (cache/cache_model.h). Ends with 1 at the first one that breaks something.
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "cache/cache_model.h"

namespace quire {
namespace {

constexpr uint64_t kRound = 20'000;  // operations of one cache before the next shape's turn

int Run(uint64_t num_operations, uint64_t seed) {
  uint64_t done = 0, matched = 0, refused = 0;
  for (uint64_t round = 0; done < num_operations; ++round) {
    const auto cases = CacheModelCases();
    const CacheModelCase& c = cases[round % cases.size()];
    const uint64_t case_seed = seed + round / cases.size();
    CacheModel model(c.shape, 12 + static_cast<uint32_t>(case_seed % 9) * 4, case_seed);
    const uint64_t end = std::min(kRound, num_operations - done);
    Status status = OkStatus();
    uint64_t i = 0;
    for (; i < end && status.ok(); ++i) status = model.Step();
    done += i;
    matched += model.matched_tokens();
    refused += model.num_failed_reserves();
    if (status.ok()) status = model.Drain();
    if (!status.ok()) {
      std::printf("%s, seed %" PRIu64 ", operation %" PRIu64 ": %s\n", c.name, case_seed, i,
                  std::string(status.message()).c_str());
      return 1;
    }
    if (round % cases.size() == cases.size() - 1)
      std::printf("%" PRIu64 " operations, %" PRIu64 " tokens matched, %" PRIu64
                  " reserves refused\n",
                  done, matched, refused);
    std::fflush(stdout);
  }
  std::printf("%" PRIu64 " operations: nothing broke\n", done);
  return 0;
}

}  // namespace
}  // namespace quire

int main(int argc, char** argv) {
  uint64_t num_operations = 0, seed = 1;
  for (int i = 1; i + 1 < argc; i += 2) {
    const uint64_t value = std::strtoull(argv[i + 1], nullptr, 10);
    if (std::strcmp(argv[i], "--operations") == 0) num_operations = value;
    if (std::strcmp(argv[i], "--seed") == 0) seed = value;
  }
  if (num_operations == 0) {
    std::printf("usage: cache_model --operations N [--seed S]\n");
    return 2;
  }
  return quire::Run(num_operations, seed);
}
