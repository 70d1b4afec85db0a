// Fuzzes the reader of config.json files: any bytes are a model whose numbers hold together, or one
// error in words.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "plan/config_exercise.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  quire::ExerciseConfig({reinterpret_cast<const char*>(data), size});
  return 0;
}
