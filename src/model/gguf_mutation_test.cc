// Headers with random faults: whatever the bytes are, the answer is a header that keeps its
// promises or an error. The fuzzer of tests/fuzz does the same for longer.
#include <gtest/gtest.h>

#include "model/gguf_exercise.h"
#include "model/gguf_mutator.h"
#include "model/gguf_writer.h"

namespace quire {
namespace {

constexpr uint64_t kDataBytes = uint64_t{1} << 40;
constexpr int kNumMutants = 4'000;

// Calls exercise(bytes) for many mutants; it says how far they came.
template <class Exercise>
void ExpectUnbroken(const Bytes& original, Exercise exercise) {
  ASSERT_EQ(exercise(original), GgufProgress::kHasTensors);
  int reached[5] = {};
  for (int mutant = 0; mutant < kNumMutants; ++mutant) {
    SCOPED_TRACE(testing::Message() << "mutant " << mutant);
    GgufMutator mutator(static_cast<uint64_t>(mutant));
    Bytes bytes = original;
    for (size_t faults = 1 + mutator.Below(3); faults > 0; --faults) mutator.Mutate(bytes);
    ++reached[static_cast<int>(exercise(bytes))];
  }
  // The faults must reach every stage, or the test looks at nothing.
  for (const int count : reached) EXPECT_GT(count, kNumMutants / 200);
}

TEST(GgufMutation, NoFaultInAHeaderBreaksUs) {
  for (const std::string_view architecture : kTinyArchitectures)
    ExpectUnbroken(TinyOf(architecture).Header(), [](const Bytes& bytes) {
      ExerciseGguf(bytes, bytes.size());  // as a whole file
      return ExerciseGguf(bytes, bytes.size() + kDataBytes);
    });
}

TEST(GgufMutation, NoFaultInTheHeadersOfPartsBreaksUs) {
  Bytes headers;
  for (const GgufWriter& part : TinyLlama().Split(3)) GgufWriter::Append(headers, part.Header());
  ExpectUnbroken(headers, [](const Bytes& bytes) { return ExerciseGgufParts(bytes, kDataBytes); });
}

}  // namespace
}  // namespace quire
