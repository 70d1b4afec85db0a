// HttpClient: sends one HTTP/1.1 request at a time and waits for its whole answer.
//
// For `quire cache`, which talks to a running server, and for tests. It keeps its connection and
// opens a new one where the server has closed it. Plain HTTP, over TCP or a Unix socket; no
// redirects, no proxies, no cookies.
//
// Threading: one thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "server/http/http_message.h"

namespace quire {

// Where a server is: "http://127.0.0.1:8000", "http://[::1]:8000/base", "unix:/run/quire.sock".
struct HttpUrl {
  std::string host;  // without brackets; empty with unix_path
  uint16_t port = 80;
  std::string unix_path;  // in place of host and port
  std::string base;       // before each path: "" or "/base"

  // kInvalidArgument for other schemes and what is no address, with the forms there are.
  static StatusOr<HttpUrl> Parse(std::string_view text);
};

class HttpClient {
 public:
  static constexpr size_t kMaxBodyBytes = size_t{256} << 20;

  // Connects with the first request. `limit`: for each request, from its start to the last byte of
  // its answer. `fields` go out with each request (authorization).
  HttpClient(HttpUrl url, std::chrono::milliseconds limit, HttpFields fields = {});
  ~HttpClient();
  HttpClient(HttpClient&&) noexcept;

  // A body goes out as application/json. Any status is an answer, not an error. Errors:
  // kUnavailable if nobody takes the connection, with the reason; kCancelled after the time limit;
  // kInternal if what comes is no HTTP or the connection breaks.
  StatusOr<HttpResponse> Send(std::string_view method, std::string_view path,
                              std::string_view body = {});

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace quire
