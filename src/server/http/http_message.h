// HttpRequest and HttpResponse: one HTTP message each way, as plain values. No sockets here.
//
// Threading: plain values.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace quire {

// Names are lower case; order and repeats are kept.
using HttpFields = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method;  // "GET", as sent
  // The path, cut at '/' first and percent-decoded once afterwards: "/v1/models/org%2Fname" is
  // {"v1", "models", "org/name"}. Never "", "." or "..": such paths were refused.
  std::vector<std::string> segments;
  std::vector<std::pair<std::string, std::string>> query;  // decoded
  HttpFields fields;
  std::string body;          // empty when only the head is there yet
  std::string peer_address;  // "127.0.0.1", or "unix"
  std::string id;            // x-request-id: the client's, if it has the right form, or a new one
  std::shared_ptr<void> note = {};  // the handler's own: what OnHead puts here comes back later

  // "/v1/models/org/name", for routes and logs.
  std::string Path() const;
  // The first value of a field or a query parameter.
  std::optional<std::string_view> Field(std::string_view lower_case_name) const;
  std::optional<std::string_view> Query(std::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  HttpFields fields =
      {};  // others: retry-after, allow, ...; x-request-id is added by the transport
  std::string body = {};
  std::string error_code = {};  // for HttpHandler::OnAnswered; not sent
  bool closes = false;          // the connection ends after it
  bool tells_time = false;      // adds openai-processing-ms: from the whole request to this answer
};

}  // namespace quire
