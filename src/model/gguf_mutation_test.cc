// Headers with random faults: whatever the bytes are, the answer is a header that keeps its
// promises or an error. The fuzzer of tests/fuzz does the same for longer.
#include <gtest/gtest.h>

#include "model/gguf_exercise.h"
#include "model/gguf_mutator.h"
#include "model/gguf_writer.h"

namespace quire {
namespace {

TEST(GgufMutation, NoFaultInAHeaderBreaksUs) {
  constexpr int kNumMutants = 20'000;
  constexpr uint64_t kDataBytes = uint64_t{1} << 40;
  const Bytes original = TinyLlama().Header();
  ASSERT_EQ(ExerciseGguf(original, original.size() + kDataBytes), GgufProgress::kHasTensors);
  int reached[5] = {};
  for (int mutant = 0; mutant < kNumMutants; ++mutant) {
    SCOPED_TRACE(testing::Message() << "mutant " << mutant);
    GgufMutator mutator(static_cast<uint64_t>(mutant));
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
