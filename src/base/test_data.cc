#include "base/test_data.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/check.h"

namespace quire {
namespace {

std::optional<std::string> IfExists(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return std::nullopt;
  return path.string();
}

}  // namespace

std::string TestData(const std::string& path) {
  return (std::filesystem::path(QUIRE_SOURCE_DIR) / "tests/data" / path).string();
}

std::optional<std::string> SharedData(const std::string& path) {
  if (const char* root = std::getenv("QUIRE_SHARED_DATA"))
    return IfExists(std::filesystem::path(root) / path);
  return IfExists(std::filesystem::path(QUIRE_SOURCE_DIR) / "../shared/data" / path);
}

std::optional<std::string> CachedModel(const std::string& name) {
  const char* home = std::getenv("HOME");
  if (home == nullptr) return std::nullopt;
  return IfExists(std::filesystem::path(home) / ".cache/quire/models" / name);
}

std::string ReadTestFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  QUIRE_CHECK(file.good());
  std::ostringstream contents;
  contents << file.rdbuf();
  return contents.str();
}

}  // namespace quire
