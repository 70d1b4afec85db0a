#include "cli/server_link.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "base/errors.h"
#include "base/message_text.h"
#include "server/api/json_text.h"

namespace quire {
namespace {

using Json = nlohmann::ordered_json;

// The longest that a server may say nothing: it may compute a long prefix.
constexpr std::chrono::seconds kSilence{600};

// What the server says of an error, if it has our form.
std::string MessageOf(const std::string& body) {
  const Json json = Json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (json.is_object() && json.contains("error") && json["error"].is_object() &&
      json["error"].contains("message") && json["error"]["message"].is_string())
    return Printable(json["error"]["message"].get<std::string>(), 1024);
  return "it says nothing about why";
}

Status ErrorOf(int status, const std::string& body, const std::string& url) {
  const std::string message = MessageOf(body);
  switch (status) {
    case 401:
      return InvalidArgument("{} wants a key: set QUIRE_API_KEY. It says: {}", url, message);
    case 403:
      return InvalidArgument("the key in QUIRE_API_KEY may not do this. {} says: {}", url, message);
    case 503:
      return Unavailable("{} can't do this now: {}", url, message);
    default:
      return InvalidArgument("{} refuses with status {}: {}", url, status, message);
  }
}

}  // namespace

StatusOr<ServerLink> ServerLink::Create(const std::string& url, const std::string& api_key) {
  auto client = HttpClient::Create(url, kSilence);
  if (!client.ok()) return client.status().WithContext("--url or QUIRE_URL");
  return ServerLink(url, api_key, std::move(client).value());
}

StatusOr<std::string> ServerLink::Ask(const std::string& method, const std::string& path,
                                      const Json& body) {
  HttpCall call;
  call.method = method;
  call.path = path;
  if (!body.is_null()) call.body = ToText(body);
  if (!api_key_.empty()) call.headers.emplace_back("Authorization", "Bearer " + api_key_);
  const StatusOr<HttpAnswer> answer = client_->Call(std::move(call));
  if (!answer.ok())
    return Unavailable(
        "no server answers at {} ({}): start one with `quire serve MODEL`, or name another with "
        "--url or QUIRE_URL",
        url_, answer.status().message());
  if (answer->status < 200 || answer->status > 299)
    return ErrorOf(answer->status, answer->body, url_);
  return answer->body;
}

StatusOr<Json> ServerLink::AskJson(const std::string& method, const std::string& path,
                                   const Json& body) {
  QUIRE_ASSIGN_OR_RETURN(const std::string text, Ask(method, path, body));
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object())
    return InvalidArgument("{} answers, but not as a Quire server does: check --url", url_);
  return json;
}

std::string PathSegment(const std::string& text) {
  std::string segment;
  for (const char c : text) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' || c == '~';
    segment += is_plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return segment;
}

}  // namespace quire
