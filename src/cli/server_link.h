// ServerLink: a running `quire serve`, for the commands that look at it or change it.
//
// Errors say what to do: kUnavailable when no server answers, kInvalidArgument with the server's
// own words when it refuses.
//
// Threading: one thread.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/status.h"
#include "cli/http_client.h"

namespace quire {

class ServerLink {
 public:
  // `url`: "http://127.0.0.1:8000". `api_key`: empty for none.
  static StatusOr<ServerLink> Create(const std::string& url, const std::string& api_key);

  // The body of a 2xx answer. A body goes out unless it is null.
  StatusOr<std::string> Ask(const std::string& method, const std::string& path,
                            const nlohmann::ordered_json& body = nullptr);
  // The same, where the answer is one JSON object.
  StatusOr<nlohmann::ordered_json> AskJson(const std::string& method, const std::string& path,
                                           const nlohmann::ordered_json& body = nullptr);

 private:
  ServerLink(std::string url, std::string api_key, std::unique_ptr<HttpClient> client)
      : url_(std::move(url)), api_key_(std::move(api_key)), client_(std::move(client)) {}

  std::string url_, api_key_;
  std::unique_ptr<HttpClient> client_;
};

// A text as one segment of a path: all but letters, digits and -._~ as %XX.
std::string PathSegment(const std::string& text);

}  // namespace quire
