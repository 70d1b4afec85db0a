// The key file: who may use the server, one key a line, as docs/server.md describes.
//
//   # name   tenant  rights          SHA-256 of the key, in hex                  limits of the
//   tenant alice    shop    user            9f86d081884c7d659a2feaa0c55ad015... concurrency=4
//   rpm=60 ops      shop    user,admin      60303ae22b998861bce3b28f33eec1be...
//
// Fields are separated by spaces or tabs; '#' at a line's start makes a comment. The file holds no
// key, only digests; nevertheless nobody but its owner may read or write it.
//
// Threading: plain values and pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "server/client.h"

namespace quire {

using KeyDigest = std::array<uint8_t, 32>;  // SHA-256
KeyDigest DigestOf(std::string_view key);

struct KeyRule {
  Client client;
  KeyDigest digest{};
};

// What one tenant may take. 0: no limit.
struct TenantQuota {
  uint32_t concurrency = 0;          // requests that are answered or wait at once
  uint32_t requests_per_minute = 0;  // rpm
  uint64_t tokens_per_minute = 0;    // tpm: prompt tokens and generated tokens
  uint64_t retained_bytes = 0;       // retained: pages kept by pin or ttl
  double share = 1;                  // of memory and steps, against other tenants' shares

  bool operator==(const TenantQuota&) const = default;
};

struct TenantRule {
  std::string tenant;
  TenantQuota quota;
};

struct KeyFile {
  std::vector<KeyRule> keys;
  std::vector<TenantRule> tenants;  // each once, in the order of the file
};

// kNotFound: no such file; kInvalidArgument, with file and line: others may read it, a line that is
// wrong, a name or a digest twice, limits of one tenant that differ.
StatusOr<KeyFile> ReadKeyFile(const std::string& path);
// The same for its text; `path` is for messages.
StatusOr<KeyFile> ParseKeyFile(std::string_view text, const std::string& path);

}  // namespace quire
