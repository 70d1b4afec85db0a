// Access: who may talk to this server: keys, the Host field, origins of web pages.
//
// Keys are kept as SHA-256 digests. A key that comes is hashed and its digest compared with those
// of all keys, each in constant time and without an early exit, so that time tells nothing about
// keys. A key's tenant, rights and limits stand in the key file (server/key_file.h has its form);
// how much a tenant may do at a time is server/tenant_limits.h's.
//
// Everything is decided on the parsed head: HttpRequest::segments, percent-decoded once.
//
// Threading: not thread-safe; the HTTP thread's.
//
// Invariants (access_test.cc):
//   [server.access.1] Without a key, if there are keys: only /health*, /ping, /version and, on
//     loopback or with open_metrics, /metrics.
//   [server.access.2] The tenant comes from the key alone (SEC-03).
//   [server.access.3] A comparison reads all digests, whatever it finds (SEC-04).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "server/api/api_error.h"
#include "server/client.h"
#include "server/http/http_server.h"
#include "server/key_file.h"

namespace quire {

struct AccessOptions {
  std::string key_file = {};           // mode 0600
  std::vector<std::string> keys = {};  // as they are: tenant "default", all rights
  bool keys_are_visible = false;       // they stood on the command line: a warning
  bool no_auth = false;                // no key needed, on any address; refused together with keys
  bool open_metrics = false;           // /metrics without a key on any address
  // Names in the Host field besides localhost and the bound address; "*": any. Checked on loopback,
  // and on other addresses if it isn't empty.
  std::vector<std::string> allowed_hosts = {};
  std::vector<std::string> cors_origins = {};  // "https://a.example"; "*": any; empty: no CORS
};

class Access {
 public:
  // Reads the key file. kInvalidArgument: no keys on an address that others reach without no_auth,
  // a wrong combination; otherwise as ReadKeyFile.
  static StatusOr<Access> Create(AccessOptions options, const HttpOptions& http);

  // 127.0.0.0/8, ::1, localhost, or a Unix socket: only this machine's processes reach it.
  static bool IsLoopback(const HttpOptions& http);

  // Of each head, in this order: a foreign Host (403 host_not_allowed, SEC-06; the connection is to
  // close), then the preflight of an allowed origin (204, without the fields of AddCorsFields).
  // Unset: go on with Identify.
  std::optional<ApiError> RefuseHost(const HttpRequest& head) const;
  std::optional<HttpResponse> AnswerPreflight(const HttpRequest& head) const;

  // The client, or 401. Paths that need no key give a client without rights when there is none or a
  // wrong one. Where no keys are, everyone is tenant "default", with all rights on loopback and
  // none elsewhere.
  ApiResult<Client> Identify(const HttpRequest& head) const;

  // Adds the CORS fields to the answer to this request, whatever it is, if its origin is allowed.
  void AddCorsFields(const HttpRequest& head, HttpFields* fields) const;

  // Reads the key file again (SIGHUP). An error changes nothing.
  Status Reload();

  bool has_keys() const { return !keys_.empty(); }
  size_t num_keys() const { return keys_.size(); }
  // Each tenant once, "default" too if a key or the lack of keys gives it.
  const std::vector<TenantRule>& tenants() const { return tenants_; }
  // What the start banner should warn of: keys that ps shows, an open address, pages of any origin.
  // One a line.
  std::vector<std::string> Warnings() const;

 private:
  Access() = default;
  Status TakeKeys();
  bool IsOpen(const HttpRequest& head) const;
  const KeyRule* Find(std::string_view key) const;
  bool IsAllowedOrigin(std::string_view origin) const;

  AccessOptions options_;
  bool is_loopback_ = true;
  bool is_local_socket_ = false;
  std::string bound_host_;
  std::vector<KeyRule> own_keys_;  // of options_.keys
  std::vector<KeyRule> keys_;      // all
  std::vector<TenantRule> tenants_;
};

}  // namespace quire
