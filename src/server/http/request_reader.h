// RequestReader: bytes of a connection in, requests out. No sockets, no time.
//
// Boost.Beast parses; this decides what counts as plain framing before and after it, so that no
// proxy in front and we can disagree where a request ends: each line of the head ends with CRLF and
// begins with no blank, no NUL or other control byte, one content-length of digits or one
// transfer-encoding that is exactly "chunked" and HTTP/1.1, one host (none only in HTTP/1.0).
// Everything else is 400 and the end of the connection. Trailers are read and dropped.
//
// Threading: one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/http/http_message.h"
#include "server/http/http_server.h"

namespace quire {

struct HttpRefusal {
  int status;
  std::string_view code;
  std::string message;
};

class RequestReader {
 public:
  enum class Step {
    kMore,     // needs bytes
    kHead,     // head() is there; read on for the body
    kWhole,    // and the body; Reset before the next request
    kRefused,  // refusal() says why; nothing more is read
  };
  struct Result {
    Step step;
    size_t num_taken;  // bytes of `bytes` that are done with; the others come again, with more
  };

  // `limits` must outlive the reader.
  explicit RequestReader(const HttpLimits& limits);
  ~RequestReader();

  // At most one step on.
  Result Read(std::string_view bytes);
  void Reset();

  // Since kHead; the body is empty. Without peer_address and id.
  HttpRequest& head() { return head_; }
  bool is_http10() const { return is_http10_; }
  bool keeps_alive() const { return keeps_alive_; }
  bool expects_continue() const { return expects_continue_; }
  // A body follows, of a known length or in chunks.
  bool has_body() const { return is_chunked_ || content_length_ > 0; }
  uint64_t content_length() const { return content_length_; }  // 0 when in chunks
  size_t body_bytes() const;                                   // read so far
  std::string TakeBody();
  const HttpRefusal& refusal() const { return *refusal_; }

 private:
  enum class Stage { kHead, kBody, kWhole, kRefused };
  struct Parser;

  Result ReadHead(std::string_view bytes);
  Result ReadBody(std::string_view bytes);
  bool CheckFraming();  // of the parsed head
  Result Refuse(int status, std::string_view code, std::string message);

  const HttpLimits& limits_;
  std::unique_ptr<Parser> parser_;  // from the head's last byte on
  Stage stage_ = Stage::kHead;
  size_t num_scanned_ = 0;         // of the head, without its end
  bool has_skipped_line_ = false;  // the empty line before the head
  HttpRequest head_;
  bool is_http10_ = false, keeps_alive_ = false, expects_continue_ = false, is_chunked_ = false;
  uint64_t content_length_ = 0;
  std::optional<HttpRefusal> refusal_;
};

}  // namespace quire
