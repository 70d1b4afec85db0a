// Where tests find their data. Only tests include this file.
#pragma once

#include <optional>
#include <string>

namespace quire {

// tests/data/PATH of this checkout; it is always there.
std::string TestData(const std::string& path);

// PATH in the shared data folder (../shared/data beside the checkout, or $QUIRE_SHARED_DATA), or
// nothing when this machine has none: then the test says so with GTEST_SKIP.
std::optional<std::string> SharedData(const std::string& path);

// The fetched model file NAME in ~/.cache/quire/models, or nothing.
std::optional<std::string> CachedModel(const std::string& name);

// The bytes of a file. Stops the program if it cannot be read: then there is nothing to test.
std::string ReadTestFile(const std::string& path);

}  // namespace quire
