// HttpServer: HTTP/1.1 for many slow, fast and hostile clients on one thread, on Boost.Beast.
//
// It reads heads and bodies within limits, hands whole requests to a handler and sends what the
// handler answers, whole or in pieces. It knows no API: routes, keys and JSON are the handler's.
//
// What it keeps, whoever is at the other end (docs/server_transport.md has the reasons):
//   - limits of HttpLimits; a request over one is answered (408, 413, 431, 503) before its body is
//     read, and the connection closes;
//   - framing that is not plain (two lengths, a length and chunks, a bare LF, an absolute or odd
//     target, "..", "//") is 400 and close; `Expect: 100-continue` is answered at once;
//   - while a request is being answered a read stays pending: end of file or reset reaches
//     HttpReply::OnGone at once. Bytes that come are the next request: at most 64 KiB are kept;
//   - at most HttpLimits::max_unsent_bytes are held for a client that does not read, and one that
//     takes nothing for `write_stall` is cut;
//   - HTTP/1.0 clients get a raw body and a close in place of chunks.
//
// Threading: one thread of its own (nice value below the workers'); handlers run on it and must not
// block. Post and Ring may be called by any thread; all else by the thread that made the server or,
// for replies, by the HTTP thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "server/http/http_message.h"

namespace quire {

struct HttpLimits {
  size_t body_bytes = size_t{32} << 20;
  size_t all_body_bytes = size_t{256} << 20;  // of all connections together: then 503
  size_t head_bytes = 16 << 10;
  uint32_t head_fields = 100;
  std::chrono::milliseconds head_time{10'000};  // from the first byte, or the accept, to the end
  std::chrono::milliseconds body_time{60'000};  // to the end of a body, or until it is slower ...
  uint32_t body_bytes_per_second = 10 << 10;    // ... than this on the whole
  std::chrono::milliseconds write_stall{60'000};
  std::chrono::milliseconds idle{75'000};  // between two requests
  uint32_t connections = 1024;             // above: accepted, 503, closed
  uint32_t connections_per_address = 256;
  size_t max_unsent_bytes = 64 << 10;
  size_t max_ahead_bytes = 64 << 10;  // of requests that come while one is answered
};

struct HttpOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 8000;                              // 0: any that is free
  std::string unix_path = {};                        // in place of host and port
  std::string certificate_file = {}, key_file = {};  // TLS, if both are there
  HttpLimits limits = {};
};

// What became of a request.
struct HttpOutcome {
  int status = 0;  // 499: the client left
  double seconds = 0;
  std::string_view error_code = {};  // HttpResponse::error_code
};

enum class GoneReason { kClosed, kReset, kStalled, kShutDown };

// The answer to one request. A handle: copies mean the same answer. All calls after the client has
// gone, or after the end, do nothing.
class HttpReply {
 public:
  // All of it.
  void Send(const HttpResponse& response);

  // Or in pieces: the head with response.body as the first piece, then more. A piece goes to the
  // socket as one write where the socket takes it, Finish's with the end mark.
  void Start(const HttpResponse& response);
  void Write(std::string_view piece);
  void Finish(std::string_view last_piece = {});

  // Bytes of pieces that the socket has not taken. A writer that waits for 0 (on_sent) before it
  // writes on stays within the limits; above max_unsent_bytes the client counts as stalled at once.
  size_t unsent_bytes() const;
  bool has_started() const;
  bool is_gone() const;

  // `on_sent`: unsent_bytes has become 0. `on_gone`: the client has left or was cut before the end;
  // called once, never after the end was handed to the socket. Set them once, before any piece.
  void Watch(std::function<void()> on_sent, std::function<void(GoneReason)> on_gone);

  class Exchange;  // of the transport
  explicit HttpReply(std::shared_ptr<Exchange> exchange) : exchange_(std::move(exchange)) {}

 private:
  std::shared_ptr<Exchange> exchange_;
};

// What a server does with requests. All on the HTTP thread.
class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  // The head is there, the body is not: an answer here (a key that is wrong, no such route) goes
  // out before the body is read, and closes the connection if there is a body.
  virtual std::optional<HttpResponse> OnHead(HttpRequest& head) = 0;
  virtual void OnRequest(HttpRequest request, HttpReply reply) = 0;
  // The transport itself refuses: makes the body of such an answer, so that all errors look alike.
  // `code`: request_timeout, request_too_large, headers_too_large, bad_request,
  // too_many_connections, overloaded.
  virtual HttpResponse OnRefusal(int status, std::string_view code, std::string_view message) = 0;
  // After Ring, once for any number of rings.
  virtual void OnRing() = 0;
  // So many times a second.
  static constexpr uint32_t kTicksPerSecond = 4;
  virtual void OnTick() = 0;
  // A request was answered, or its client left (status 499): for the access log and the metrics.
  // May come from inside a call on its reply.
  virtual void OnAnswered(const HttpRequest& request, const HttpOutcome& outcome) = 0;
  // More fields for the head of an answer, whoever made it: for CORS.
  virtual void AddFields(const HttpRequest& request, HttpFields* fields) {
    (void)request;
    (void)fields;
  }
  // Something went wrong here that no client can see, as no file descriptor being left: for the
  // log. Once for each kind.
  virtual void OnTrouble(std::string_view what) { (void)what; }
};

class HttpServer {
 public:
  // Listens at once, answers from Run on. kInvalidArgument for an address that can't be taken, with
  // what to change. The handler must outlive the server.
  static StatusOr<std::unique_ptr<HttpServer>> Create(HttpOptions options, HttpHandler* handler);
  ~HttpServer();

  // Starts the thread.
  void Run();
  // No new connections; those that are idle close; returns when the others have ended, or cuts them
  // after `most`. Then the thread has ended.
  void Stop(std::chrono::milliseconds most);

  // "127.0.0.1:8000", with the port that was taken.
  const std::string& address() const;
  uint16_t port() const;
  uint32_t num_connections() const;
  // Processor time of the HTTP thread.
  double cpu_seconds() const;

  // Runs `work` on the HTTP thread. Allocates.
  void Post(std::function<void()> work);
  // OnRing soon. Takes no lock and allocates nothing: the engine's thread calls it in each step.
  void Ring();

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace quire
