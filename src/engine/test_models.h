// Models for tests that are damaged on purpose.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>

#include "base/check.h"
#include "model/gguf_file.h"

namespace quire {

// The path of a copy of the model `source` whose tensor `tensor` (f32) has a NaN as value `index`.
inline std::string ModelWithNan(const std::string& source, const std::string& tensor,
                                size_t index) {
  auto file = GgufFile::Open(source);
  QUIRE_CHECK(file.ok());
  const GgufTensor* found = file->header().FindTensor(tensor);
  QUIRE_CHECK(found != nullptr);
  std::ifstream input(source, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(input), {}};
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(bytes.data() + found->file_offset + index * sizeof nan, &nan, sizeof nan);
  const std::string path = testing::TempDir() + "/quire-nan-" + tensor + ".gguf";
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

}  // namespace quire
