// Fuzzes what we do with GGUF headers: bytes as a whole file, as the start of a file with room for
// every tensor, and as the headers of a model in parts. Without a corpus it starts from small real
// headers, so a run of seconds already looks behind the first checks.
#include <algorithm>
#include <cstring>
#include <iterator>

#include "model/gguf_exercise.h"
#include "model/gguf_mutator.h"
#include "model/gguf_writer.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  quire::ExerciseGguf(bytes, size);
  quire::ExerciseGguf(bytes, size + (uint64_t{1} << 40));
  quire::ExerciseGgufParts(bytes, uint64_t{1} << 40);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int seed) {
  quire::GgufMutator mutator(seed);
  quire::Bytes bytes(size);
  std::memcpy(bytes.data(), data, size);
  if (size < 24 || mutator.Below(256) == 0) {
    bytes.clear();
    const quire::GgufWriter tiny = quire::TinyOf(
        quire::kTinyArchitectures[mutator.Below(std::size(quire::kTinyArchitectures))]);
    for (const quire::GgufWriter& part : tiny.Split(static_cast<uint16_t>(1 + mutator.Below(3))))
      quire::GgufWriter::Append(bytes, part.Header());
  } else if (mutator.Below(2) == 0) {
    return LLVMFuzzerMutate(data, size, max_size);
  }
  for (size_t faults = 1 + mutator.Below(3); faults > 0; --faults) mutator.Mutate(bytes);
  bytes.resize(std::min(bytes.size(), max_size));
  std::memcpy(data, bytes.data(), bytes.size());
  return bytes.size();
}
