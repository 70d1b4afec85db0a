// Headers with random faults: whatever the bytes are, the answer is a header that keeps its
// promises or an error. The fuzzer of tests/fuzz does the same for longer.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "model/gguf_exercise.h"
#include "model/gguf_writer.h"

namespace quire {
namespace {

// Values that sit on the edges of checks.
constexpr uint64_t kEdges[] = {
    0,  1,  2,   3,          5,          8,          9,          12,         13,         31,
    63, 64, 255, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1ull << 32, 1ull << 60, 1ull << 63, ~0ull};

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed) {}

  size_t Below(size_t bound) { return random_() % bound; }

  void Mutate(Bytes& bytes) {
    const size_t place = Below(bytes.size());
    const auto at = [&](size_t offset) {
      return bytes.begin() + static_cast<std::ptrdiff_t>(offset);
    };
    switch (Below(6)) {
      case 0:  // one bit
        bytes[place] ^= static_cast<std::byte>(1u << Below(8));
        break;
      case 1:  // one byte
        bytes[place] = static_cast<std::byte>(Below(256));
        break;
      case 2: {  // a number of 4 or 8 bytes
        const uint64_t edge = kEdges[Below(std::size(kEdges))];
        const size_t size = std::min<size_t>(Below(2) != 0 ? 8 : 4, bytes.size() - place);
        std::memcpy(bytes.data() + place, &edge, size);
        break;
      }
      case 3:  // bytes missing
        bytes.erase(at(place), at(place + std::min<size_t>(1 + Below(16), bytes.size() - place)));
        if (bytes.empty()) bytes.resize(1);
        break;
      case 4:  // bytes twice
      {
        const size_t size = std::min<size_t>(1 + Below(40), bytes.size() - place);
        const Bytes copy(at(place), at(place + size));
        bytes.insert(at(Below(bytes.size())), copy.begin(), copy.end());
        break;
      }
      default:  // the end missing
        if (Below(8) == 0) bytes.resize(1 + place);
    }
  }

 private:
  std::mt19937_64 random_;
};

TEST(GgufMutation, NoFaultInAHeaderBreaksUs) {
  constexpr int kNumMutants = 20'000;
  constexpr uint64_t kDataBytes = uint64_t{1} << 40;
  const Bytes original = TinyLlama().Header();
  ASSERT_EQ(ExerciseGguf(original, original.size() + kDataBytes), GgufProgress::kHasTensors);
  int reached[5] = {};
  for (int mutant = 0; mutant < kNumMutants; ++mutant) {
    SCOPED_TRACE(testing::Message() << "mutant " << mutant);
    Mutator mutator(static_cast<uint64_t>(mutant));
    Bytes bytes = original;
    for (size_t faults = 1 + mutator.Below(3); faults > 0; --faults) mutator.Mutate(bytes);
    // As a whole file, and as the start of one with room for every tensor.
    ExerciseGguf(bytes, bytes.size());
    ++reached[static_cast<int>(ExerciseGguf(bytes, bytes.size() + kDataBytes))];
  }
  // The faults must reach every stage, or the test looks at nothing.
  for (const int count : reached) EXPECT_GT(count, kNumMutants / 200);
}

}  // namespace
}  // namespace quire
