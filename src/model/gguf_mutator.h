// GgufMutator: puts random faults into bytes, of the kinds that a header's checks must catch. Test
// code only: the mutation test and the fuzzer share it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>

#include "model/gguf_writer.h"

namespace quire {

class GgufMutator {
 public:
  explicit GgufMutator(uint64_t seed) : random_(seed) {}

  // A number below `bound`, which is not 0.
  size_t Below(size_t bound) { return random_() % bound; }

  // One fault: a bit, a byte, a number on the edge of some check, bytes missing or twice, a cut.
  // Requires: not empty; stays so. At most 40 bytes longer after it.
  void Mutate(Bytes& bytes);

 private:
  std::mt19937_64 random_;
};

}  // namespace quire
