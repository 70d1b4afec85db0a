// call_mutations COUNT [SEED]: reads COUNT mutated request bodies and checks each outcome
// (api/call_exercise.h). Exit code 1 at the first fault, with its body. For a sanitised build too:
// 1,000,000 take some minutes.
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>

#include "server/api/call_exercise.h"
#include "server/api/test_served_model.h"

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    fmt::print(stderr, "usage: call_mutations COUNT [SEED]\n");
    return 2;
  }
  const uint64_t count = std::strtoull(argv[1], nullptr, 10);
  const uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  constexpr double kHangSeconds = 10;
  quire::TestServedModel served;
  uint64_t num_taken = 0;
  double slowest = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const auto kind = static_cast<int>(i % quire::kNumCallKinds);
    const uint64_t random = seed * 1'000'000'007 + i;
    const std::string valid = quire::ValidBody(kind, random);
    const bool is_valid = i % 64 < quire::kNumCallKinds;  // some stay as they are
    const std::string body = is_valid ? valid : quire::MutatedBody(valid, random);
    const auto start = std::chrono::steady_clock::now();
    auto [fault, was_taken] = quire::ExerciseCall(kind, body, served.model());
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    num_taken += was_taken ? 1 : 0;
    if (is_valid && !was_taken) fault = "refused, but it is valid";
    slowest = std::max(slowest, taken.count());
    if (taken.count() > kHangSeconds) fault = fmt::format("{:.1f} s", taken.count());
    if (!fault.empty()) {
      fmt::print(stderr, "call_mutations: body {} of kind {}: {}\n{}\n", i, kind, fault, body);
      return 1;
    }
  }
  fmt::print("call_mutations: {} bodies, {} of them taken, no fault; the slowest took {:.1f} ms\n",
             count, num_taken, slowest * 1e3);
  return 0;
}
