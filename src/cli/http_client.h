// HttpClient: calls to one HTTP/1.1 server, many at once, on the thread that runs them.
//
// Plain text only, no TLS. Connections stay open and serve later calls. Bodies are given on as they
// come in, so that a stream's events can be timed.
//
// Threading: one thread, which is in Run() while hooks are called; hooks may Start further calls.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace quire {

struct HttpCall {
  std::string method = "GET";
  std::string path = "/";  // after the base address's own path
  std::string body = {};   // of application/json, where not empty
  std::vector<std::pair<std::string, std::string>> headers = {};
  // Once, when the request's last byte was given to the socket's buffer. May be empty.
  std::function<void()> on_sent = {};
  // A piece of the body, not empty; `status` is the answer's. The view lives until it returns.
  std::function<void(int status, std::string_view piece)> on_body = {};
  // Once, at the end: the answer's status, or why there is none (or no whole one).
  std::function<void(const StatusOr<int>& status)> on_end = {};
};

struct HttpAnswer {
  int status = 0;
  std::string body;
};

class HttpClient {
 public:
  // `base_url`: http://HOST[:PORT][/PATH]. A call in which no byte comes or goes for `silence`
  // fails. kInvalidArgument for another form, kNotFound for a name without an address.
  static StatusOr<std::unique_ptr<HttpClient>> Create(const std::string& base_url,
                                                      std::chrono::seconds silence);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  void Start(HttpCall call);
  // Calls `hook` in Run(), not before `time`.
  void At(std::chrono::steady_clock::time_point time, std::function<void()> hook);
  // Until no call and no hook is left.
  void Run();

  // One call, waited for. Requires: not inside a hook, nothing else started.
  StatusOr<HttpAnswer> Call(HttpCall call);

 private:
  class Impl;
  explicit HttpClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace quire
