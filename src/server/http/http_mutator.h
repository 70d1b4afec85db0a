// MutatedRequests: HTTP requests with random faults, of the kinds that a parser must catch. Test
// code only: the mutation test and the fuzzer share it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>

namespace quire {

class HttpMutator {
 public:
  explicit HttpMutator(uint64_t seed) : random_(seed) {}

  // A number below `bound`, which is not 0.
  size_t Below(size_t bound) { return random_() % bound; }
  // One to three requests that are right, one after another.
  std::string Requests();
  // One fault: a byte, a piece missing or twice, a number on the edge, a word of HTTP somewhere.
  void Mutate(std::string* bytes);

 private:
  std::mt19937_64 random_;
};

}  // namespace quire
