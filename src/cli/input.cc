#include "cli/input.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <fstream>
#include <iterator>

#include "base/errors.h"

namespace quire {

StatusOr<std::string> ReadFile(const std::string& path) {
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) return NotFound("{}: no such file", path);
  if (!S_ISREG(info.st_mode)) return InvalidArgument("{}: not a regular file", path);
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file) return InvalidArgument("{}: cannot be read", path);
  return text;
}

std::string ReadAll(std::FILE* file) {
  std::string text;
  char buffer[65536];
  for (size_t count; (count = std::fread(buffer, 1, sizeof buffer, file)) > 0;)
    text.append(buffer, count);
  return text;
}

// A line of the terminal without its newline; nothing at its end or after Ctrl-C.
std::optional<std::string> ReadLine() {
  std::string line;
  for (char c; read(STDIN_FILENO, &c, 1) == 1;) {
    if (c == '\n') return line;
    line += c;
  }
  if (!line.empty() && errno != EINTR) return line;
  return std::nullopt;
}

StatusOr<std::vector<TokenId>> ParseTokenIds(std::string_view text) {
  std::vector<TokenId> ids;
  const char* end = text.data() + text.size();
  for (const char* at = text.data(); at != end;) {
    if (*at == ' ' || *at == ',' || *at == '\n' || *at == '\t') {
      ++at;
      continue;
    }
    TokenId id = 0;
    const auto result = std::from_chars(at, end, id);
    if (result.ec != std::errc())
      return InvalidArgument("'{}' is no token id: give numbers, such as \"1 403 407\"",
                             std::string(at, end));
    ids.push_back(id);
    at = result.ptr;
  }
  return ids;
}

}  // namespace quire
