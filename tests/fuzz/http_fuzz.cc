// Fuzzes the HTTP parser: bytes as they come on a connection, in pieces of one size and of another;
// both must read the same requests and refuse the same way.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "base/check.h"
#include "server/http/http_mutator.h"
#include "server/http/request_reader.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

std::vector<std::string> ReadAll(std::string_view bytes, size_t piece) {
  using Step = quire::RequestReader::Step;
  quire::HttpLimits limits;
  limits.head_bytes = 1 << 10;
  limits.body_bytes = 4 << 10;
  quire::RequestReader reader(limits);
  std::vector<std::string> read;
  std::string in;
  for (size_t at = 0; at < bytes.size(); at += piece) {
    in += bytes.substr(at, piece);
    for (Step step = Step::kHead; step != Step::kMore;) {
      const auto result = reader.Read(in);
      QUIRE_CHECK(result.num_taken <= in.size());
      in.erase(0, result.num_taken);
      step = result.step;
      if (step == Step::kHead) {
        for (const std::string& segment : reader.head().segments)
          QUIRE_CHECK(!segment.empty() && segment != "." && segment != "..");
        read.push_back(reader.head().method + reader.head().Path());
      } else if (step == Step::kWhole) {
        QUIRE_CHECK(reader.body_bytes() <= limits.body_bytes);
        read.push_back(reader.TakeBody());
        reader.Reset();
      } else if (step == Step::kRefused) {
        read.push_back(std::to_string(reader.refusal().status));
        return read;
      }
    }
  }
  return read;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto whole = ReadAll(bytes, size + 1);
  QUIRE_CHECK(ReadAll(bytes, 7) == whole);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int seed) {
  quire::HttpMutator mutator(seed);
  std::string bytes(reinterpret_cast<const char*>(data), size);
  if (size < 16 || mutator.Below(64) == 0) {
    bytes = mutator.Requests();
  } else if (mutator.Below(2) == 0) {
    return LLVMFuzzerMutate(data, size, max_size);
  }
  for (size_t faults = 1 + mutator.Below(3); faults > 0; --faults) mutator.Mutate(&bytes);
  bytes.resize(std::min(bytes.size(), max_size));
  std::memcpy(data, bytes.data(), bytes.size());
  return bytes.size();
}
