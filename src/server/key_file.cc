#include "server/key_file.h"

#include <fcntl.h>
#include <openssl/sha.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>

#include "base/errors.h"
#include "base/units.h"

namespace quire {
namespace {

constexpr size_t kMaxFileBytes = size_t{4} << 20;

bool IsName(std::string_view text) {
  return !text.empty() && text.size() <= 64 && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  });
}

// What lies between blanks.
std::vector<std::string_view> Words(std::string_view line) {
  std::vector<std::string_view> words;
  while (true) {
    const size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string_view::npos) return words;
    const size_t end = std::min(line.find_first_of(" \t\r", begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    line.remove_prefix(end);
  }
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::optional<KeyDigest> ParseDigest(std::string_view hex) {
  KeyDigest digest;
  if (hex.size() != 2 * digest.size()) return std::nullopt;
  for (size_t i = 0; i < digest.size(); ++i) {
    const int high = HexDigit(hex[2 * i]), low = HexDigit(hex[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    digest[i] = static_cast<uint8_t>(16 * high + low);
  }
  return digest;
}

Status ParseRights(std::string_view rights, Client* client) {
  while (true) {
    const size_t end = std::min(rights.find(','), rights.size());
    const std::string_view right = rights.substr(0, end);
    if (right == "admin")
      client->is_admin = true;
    else if (right == "priority")
      client->may_prioritise = true;
    else if (right != "user")
      return InvalidArgument("'{}' is no right: use user, admin, priority, joined by commas",
                             right);
    if (end == rights.size()) return OkStatus();
    rights.remove_prefix(end + 1);
  }
}

// "rpm=60" into the quota. `name` is set to the limit's.
Status ParseLimit(std::string_view word, TenantQuota* quota) {
  const size_t equals = word.find('=');
  const std::string_view name = word.substr(0, equals);
  const std::string_view text =
      equals == std::string_view::npos ? std::string_view() : word.substr(equals + 1);
  const auto take = [](const StatusOr<uint64_t>& amount, uint64_t most, auto* to) {
    // 0 could be read as nothing or as no limit.
    if (!amount.ok() || amount.value() == 0 || amount.value() > most) return false;
    *to = static_cast<std::remove_pointer_t<decltype(to)>>(amount.value());
    return true;
  };
  bool is_good = false;
  if (name == "concurrency") {
    is_good = take(ParseCount(text), 1'000'000, &quota->concurrency);
  } else if (name == "rpm") {
    is_good = take(ParseCount(text), 1'000'000'000, &quota->requests_per_minute);
  } else if (name == "tpm") {
    is_good = take(ParseCount(text), uint64_t{1} << 50, &quota->tokens_per_minute);
  } else if (name == "retained") {
    is_good = take(ParseBytes(text), uint64_t{1} << 60, &quota->retained_bytes);
  } else if (name == "share") {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), quota->share);
    is_good = error == std::errc() && end == text.data() + text.size() && quota->share >= 0.01 &&
              quota->share <= 100;  // also refuses NaN
  } else {
    return InvalidArgument(
        "'{}' is no limit: use concurrency=N, rpm=N, tpm=N, retained=SIZE, share=X", word);
  }
  if (is_good) return OkStatus();
  return InvalidArgument(
      "'{}': need a whole number above 0 (such as 60 or 25k), retained=2GiB, a share from 0.01 to "
      "100",
      word);
}

Status ParseLine(const std::vector<std::string_view>& words, KeyFile* file) {
  if (words.size() < 4)
    return InvalidArgument(
        "need NAME TENANT RIGHTS SHA256, and limits if you like; there are {} "
        "words",
        words.size());
  KeyRule rule;
  for (const std::string_view name : {words[0], words[1]})
    if (!IsName(name))
      return InvalidArgument("'{}' is no name: use 1 to 64 of A-Z a-z 0-9 . _ -", name);
  rule.client.key_name = words[0];
  rule.client.tenant = words[1];
  QUIRE_RETURN_IF_ERROR(ParseRights(words[2], &rule.client));
  const auto digest = ParseDigest(words[3]);
  if (!digest.has_value())  // it may be the key itself: not shown
    return InvalidArgument("the fourth word is no SHA-256: need 64 hex digits");
  rule.digest = *digest;
  for (const KeyRule& other : file->keys) {
    if (other.client.key_name == rule.client.key_name)
      return InvalidArgument("a key named {} is there twice", words[0]);
    if (other.digest == rule.digest)
      return InvalidArgument("{} and {} have the same key", other.client.key_name, words[0]);
  }

  TenantQuota quota;
  for (size_t i = 4; i < words.size(); ++i) QUIRE_RETURN_IF_ERROR(ParseLimit(words[i], &quota));
  const auto tenant =
      std::find_if(file->tenants.begin(), file->tenants.end(),
                   [&](const TenantRule& known) { return known.tenant == words[1]; });
  if (tenant == file->tenants.end()) {
    file->tenants.push_back({rule.client.tenant, quota});
  } else if (words.size() > 4) {  // a line without limits leaves those of another line
    if (tenant->quota != TenantQuota() && tenant->quota != quota)
      return InvalidArgument("tenant {} has other limits in a line above: give them once",
                             words[1]);
    tenant->quota = quota;
  }
  file->keys.push_back(std::move(rule));
  return OkStatus();
}

}  // namespace

KeyDigest DigestOf(std::string_view key) {
  KeyDigest digest;
  SHA256(reinterpret_cast<const unsigned char*>(key.data()), key.size(), digest.data());
  return digest;
}

StatusOr<KeyFile> ParseKeyFile(std::string_view text, const std::string& path) {
  KeyFile file;
  int number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const auto words = Words(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (words.empty() || words[0].starts_with('#')) continue;
    if (const Status status = ParseLine(words, &file); !status.ok())
      return status.WithContext(fmt::format("{}:{}", path, number));
  }
  if (file.keys.empty())
    return InvalidArgument("{}: there is no key in it: need lines NAME TENANT RIGHTS SHA256", path);
  return file;
}

StatusOr<KeyFile> ReadKeyFile(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return NotFound("--api-key-file {}: {}", path, std::strerror(errno));
  // Looked at after it was opened: what is checked is what is read.
  struct stat facts {};
  std::string text;
  Status status;
  if (fstat(fd, &facts) != 0 || !S_ISREG(facts.st_mode)) {
    status = InvalidArgument("--api-key-file {}: need a plain file", path);
  } else if ((facts.st_mode & 077) != 0) {
    status = InvalidArgument(
        "--api-key-file {} has mode {:04o}, so that others may read it: need "
        "chmod 600 {}",
        path, facts.st_mode & 07777, path);
  } else if (facts.st_size > static_cast<off_t>(kMaxFileBytes)) {
    status = InvalidArgument("--api-key-file {}: {} bytes, at most {} are possible", path,
                             facts.st_size, kMaxFileBytes);
  } else {
    char bytes[4096];
    ssize_t count = 0;
    while ((count = read(fd, bytes, sizeof bytes)) > 0 && text.size() <= kMaxFileBytes)
      text.append(bytes, static_cast<size_t>(count));
    if (count < 0) status = InvalidArgument("--api-key-file {}: {}", path, std::strerror(errno));
  }
  close(fd);
  if (!status.ok()) return status;
  return ParseKeyFile(text, path);
}

}  // namespace quire
