// Bodies of requests: the first byte picks the reader, the rest is the JSON text. Whatever it says,
// there is a checked call or an error in the API's form.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "server/api/call_exercise.h"
#include "server/api/test_served_model.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static quire::TestServedModel served;
  if (size == 0) return 0;
  const std::string_view body(reinterpret_cast<const char*>(data + 1), size - 1);
  const std::string fault = quire::ExerciseCall(data[0], body, served.model()).fault;
  if (!fault.empty()) {
    std::fprintf(stderr, "call_fuzz: %s\n", fault.c_str());
    std::abort();
  }
  return 0;
}
