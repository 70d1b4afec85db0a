#include "server/access.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/crypto.h>

#include <algorithm>
#include <cctype>

#include "base/errors.h"

namespace quire {
namespace {

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

// "[::1]:8000" to "::1", "Example.org.:80" to "example.org". Unset: not the form of a host.
std::optional<std::string> HostName(std::string_view field) {
  std::string_view name = field, port;
  if (name.starts_with('[')) {
    const size_t end = name.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    port = name.substr(end + 1);
    name = name.substr(1, end - 1);
  } else if (const size_t colon = name.find(':'); colon != std::string_view::npos) {
    port = name.substr(colon);
    name = name.substr(0, colon);
  }
  if (!port.empty() &&
      (port[0] != ':' || port.size() > 6 ||
       !std::all_of(port.begin() + 1, port.end(), [](char c) { return c >= '0' && c <= '9'; })))
    return std::nullopt;
  if (name.ends_with('.')) name.remove_suffix(1);
  if (name.empty()) return std::nullopt;
  return Lower(name);
}

// An address without brackets, as HostName gives it.
std::string BareHost(const std::string& host) {
  return HostName(host.find(':') != host.rfind(':') && !host.starts_with('[') ? "[" + host + "]"
                                                                              : host)
      .value_or(host);
}

// The key in "Bearer KEY"; unset: none, or more than one field.
std::optional<std::string_view> BearerKey(const HttpRequest& head) {
  std::optional<std::string_view> field;
  for (const auto& [name, value] : head.fields) {
    if (name != "authorization") continue;
    if (field.has_value()) return std::nullopt;
    field = value;
  }
  constexpr std::string_view kScheme = "bearer ";
  if (!field.has_value() || Lower(field->substr(0, kScheme.size())) != kScheme) return std::nullopt;
  std::string_view key = field->substr(kScheme.size());
  while (key.starts_with(' ')) key.remove_prefix(1);
  while (key.ends_with(' ')) key.remove_suffix(1);
  return key;
}

bool AreFieldNames(std::string_view text) {
  return text.size() <= 1024 && std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '-' || c == '_' || c == ',' || c == ' ';
         });
}

Client Operator(std::string key_name) {
  return {.key_name = std::move(key_name),
          .tenant = "default",
          .is_admin = true,
          .may_prioritise = true};
}

}  // namespace

bool Access::IsLoopback(const HttpOptions& http) {
  if (!http.unix_path.empty()) return true;
  const std::string host = BareHost(http.host);
  if (host == "localhost") return true;
  in_addr v4{};
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6{};
  return inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

StatusOr<Access> Access::Create(AccessOptions options, const HttpOptions& http) {
  Access access;
  access.options_ = std::move(options);
  access.is_loopback_ = IsLoopback(http);
  access.is_local_socket_ = !http.unix_path.empty();
  access.bound_host_ = BareHost(http.host);
  for (std::string& host : access.options_.allowed_hosts)
    if (host != "*") host = BareHost(host);
  int number = 0;
  for (std::string& key : access.options_.keys) {
    if (key.empty()) return InvalidArgument("--api-key: the key is empty");
    access.own_keys_.push_back({Operator(fmt::format("api-key-{}", ++number)), DigestOf(key)});
    OPENSSL_cleanse(key.data(), key.size());
  }
  access.options_.keys.clear();
  QUIRE_RETURN_IF_ERROR(access.Reload());
  if (access.options_.no_auth && access.has_keys())
    return InvalidArgument("--no-auth and keys do not go together: leave one of them out");
  if (!access.has_keys() && !access.is_loopback_ && !access.options_.no_auth)
    return InvalidArgument(
        "--host {} lets others reach this server, and there is no key: give --api-key-file or "
        "QUIRE_API_KEY, or --no-auth if everyone may use it",
        http.host);
  return access;
}

Status Access::Reload() {
  KeyFile file;
  if (!options_.key_file.empty()) {
    QUIRE_ASSIGN_OR_RETURN(file, ReadKeyFile(options_.key_file));
  }
  keys_ = own_keys_;
  keys_.insert(keys_.end(), file.keys.begin(), file.keys.end());
  tenants_ = std::move(file.tenants);
  const bool has_default = std::any_of(tenants_.begin(), tenants_.end(),
                                       [](const auto& rule) { return rule.tenant == "default"; });
  if (!has_default && (!own_keys_.empty() || keys_.empty())) tenants_.push_back({"default", {}});
  return OkStatus();
}

std::optional<ApiError> Access::RefuseHost(const HttpRequest& head) const {
  const bool checks_host = (is_loopback_ && !is_local_socket_) || !options_.allowed_hosts.empty();
  if (!checks_host) return std::nullopt;
  for (const auto& [name, value] : head.fields) {
    if (name != "host") continue;
    const auto host = HostName(value);
    const auto is_host = [&](const std::string& known) { return known == "*" || known == *host; };
    if (host.has_value() &&
        (*host == "localhost" || *host == "127.0.0.1" || *host == "::1" || *host == bound_host_ ||
         std::any_of(options_.allowed_hosts.begin(), options_.allowed_hosts.end(), is_host)))
      continue;
    return ApiError{.status = 403,
                    .type = "permission_error",
                    .code = "host_not_allowed",
                    .message =
                        "The name in the field Host is not one of this server's. Its operator can "
                        "add it: --allowed-hosts NAME."};
  }
  return std::nullopt;
}

std::optional<HttpResponse> Access::AnswerPreflight(const HttpRequest& head) const {
  if (head.method == "OPTIONS" && head.Field("access-control-request-method").has_value()) {
    const auto origin = head.Field("origin");  // of no page we know: as any other request
    if (!origin.has_value() || !IsAllowedOrigin(*origin)) return std::nullopt;
    HttpResponse response{.status = 204, .content_type = ""};
    response.fields.emplace_back("access-control-allow-methods", "GET, POST, PATCH, DELETE");
    if (const auto names = head.Field("access-control-request-headers");
        names.has_value() && AreFieldNames(*names))
      response.fields.emplace_back("access-control-allow-headers", std::string(*names));
    response.fields.emplace_back("access-control-max-age", "600");
    return response;
  }
  return std::nullopt;
}

bool Access::IsAllowedOrigin(std::string_view origin) const {
  const std::string lower = Lower(origin);
  return std::any_of(
      options_.cors_origins.begin(), options_.cors_origins.end(),
      [&](const std::string& known) { return known == "*" || Lower(known) == lower; });
}

void Access::AddCorsFields(const HttpRequest& head, HttpFields* fields) const {
  const auto origin = head.Field("origin");
  if (!origin.has_value() || !IsAllowedOrigin(*origin)) return;
  fields->emplace_back("access-control-allow-origin", std::string(*origin));
  fields->emplace_back("access-control-expose-headers",
                       "x-request-id, x-quire-ignored, retry-after");
  fields->emplace_back("vary", "origin");
}

bool Access::IsOpen(const HttpRequest& head) const {
  const auto& path = head.segments;
  if (path.empty()) return false;
  if (path[0] == "health")
    return path.size() == 1 ||
           (path.size() == 2 && (path[1] == "live" || path[1] == "ready" || path[1] == "progress"));
  if (path.size() != 1) return false;
  return path[0] == "ping" || path[0] == "version" ||
         (path[0] == "metrics" && (is_loopback_ || options_.open_metrics));
}

const KeyRule* Access::Find(std::string_view key) const {
  const KeyDigest digest = DigestOf(key);
  size_t found = 0;  // index + 1; no branch depends on it before the end
  for (size_t i = 0; i < keys_.size(); ++i) {
    const auto differs =
        static_cast<unsigned>(CRYPTO_memcmp(digest.data(), keys_[i].digest.data(), digest.size()));
    const size_t is_equal = 1 ^ ((differs | (0 - differs)) >> 31);
    found |= (size_t{0} - is_equal) & (i + 1);
  }
  return found == 0 ? nullptr : &keys_[found - 1];
}

ApiResult<Client> Access::Identify(const HttpRequest& head) const {
  if (!has_keys()) return is_loopback_ ? Operator("") : Client{};
  const auto key = BearerKey(head);
  const KeyRule* rule = key.has_value() ? Find(*key) : nullptr;
  if (rule != nullptr) return rule->client;
  if (IsOpen(head)) return Client{};
  return InvalidApiKey(/*is_missing=*/!key.has_value());
}

std::vector<std::string> Access::Warnings() const {
  std::vector<std::string> warnings;
  if (options_.keys_are_visible)
    warnings.emplace_back(
        "other users of this machine see the key of --api-key in the process list: use "
        "QUIRE_API_KEY or --api-key-file");
  if (!has_keys() && !is_loopback_)
    warnings.emplace_back("no key is needed, and others can reach this server (--no-auth)");
  if (std::find(options_.cors_origins.begin(), options_.cors_origins.end(), "*") !=
          options_.cors_origins.end() &&
      !has_keys())
    warnings.emplace_back("any web page may use this server without a key (--cors-origins '*')");
  if (is_loopback_ && std::find(options_.allowed_hosts.begin(), options_.allowed_hosts.end(),
                                "*") != options_.allowed_hosts.end())
    warnings.emplace_back(
        "any Host is taken, so that a web page may reach this server under a foreign name "
        "(--allowed-hosts '*')");
  return warnings;
}

}  // namespace quire
