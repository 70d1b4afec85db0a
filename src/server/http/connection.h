// Connection: one client, from accept to close: reads requests, lets the handler answer, sends.
//
// One request is answered at a time. What it goes through:
//   kOpening (TLS) -> kHead -> kBody -> kAnswering -> kHead ... -> kClosing -> kClosed
// kClosing: all is sent, our side is shut, what still comes is thrown away for a moment. A close
// with unread bytes would be a reset, and take the answer with it.
//
// A read is pending in each state. In kAnswering its end of file means that the client is gone.
// Callbacks of the handler never come from inside a call that the handler makes on a reply, except
// OnAnswered.
//
// Threading: the HTTP thread.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "server/http/byte_stream.h"
#include "server/http/http_server.h"
#include "server/http/request_reader.h"

namespace quire {

class Connection;

// What the connections of one server share.
class ConnectionOwner {
 public:
  ConnectionOwner(HttpHandler* with_handler, const HttpLimits& with_limits)
      : handler(with_handler), limits(with_limits) {}
  virtual ~ConnectionOwner() = default;
  virtual void OnClosed(Connection* connection) = 0;
  virtual std::string_view Date() = 0;  // now, as HTTP writes it

  boost::asio::io_context io{1};
  HttpHandler* const handler;
  const HttpLimits limits;
  ReadScratch scratch;
  std::string frame;         // one answer's or piece's text
  size_t body_bytes = 0;     // of bodies, from their first byte until their answer starts
  bool is_stopping = false;  // answers close
};

// What an HttpReply points to. `connection` is null after the end.
class HttpReply::Exchange {
 public:
  Connection* connection = nullptr;
  bool has_started = false;
  bool is_gone = false;
  std::function<void()> on_sent;
  std::function<void(GoneReason)> on_gone;
};

class Connection final : public ByteStream::User, public std::enable_shared_from_this<Connection> {
 public:
  Connection(ConnectionOwner* owner, std::unique_ptr<ByteStream> stream, std::string peer_address);

  void Start();
  // Answers 503 without a request, and closes.
  void StartRefused();
  // Closes if nothing is under way.
  void CloseIfIdle();
  // The client is gone, or must go.
  void Drop(GoneReason reason);
  // Four times a second: sees the end of a client that has sent so much ahead that no read is
  // pending.
  void CheckPaused();

  // Of HttpReply.
  void Send(const HttpResponse& response);
  void StartPieces(const HttpResponse& response);
  void WritePiece(std::string_view piece);
  void FinishPieces(std::string_view last_piece);
  size_t unsent_bytes() const { return out_.size() - num_sent_; }

  void OnOpen(const ErrorCode& error) override;
  void OnRead(const ErrorCode& error, std::string_view bytes) override;
  std::string_view Unsent() override { return std::string_view(out_).substr(num_sent_); }
  void OnWritten(const ErrorCode& error, size_t num_bytes) override;
  void OnShut() override;

 private:
  using Clock = std::chrono::steady_clock;
  enum class State { kOpening, kHead, kBody, kAnswering, kClosing, kClosed };

  // connection.cc: requests in.
  void Advance();
  void TakeRequests();
  void NameRequest();
  void TakeHead();
  void TakeWhole();
  void Refuse(int status, std::string_view code, const std::string& message);
  void ReadOn();
  void CountBody();
  void ForgetBody();
  Clock::time_point Deadline() const;  // max() if there is none
  void Arm();
  void OnDeadline();
  std::shared_ptr<Connection> self() { return shared_from_this(); }

  // connection_out.cc: answers out.
  void BeginAnswer(const HttpResponse& response, bool is_whole);
  void EndAnswer();
  void AnswerDone();
  void Put(std::string_view bytes);
  void OnAllSent();
  void Lose(GoneReason reason);
  void TellGone(GoneReason reason);
  void Shut();
  void Close();

  ConnectionOwner* const owner_;
  const std::unique_ptr<ByteStream> stream_;
  const std::string peer_address_;
  boost::asio::steady_timer timer_;
  Clock::time_point armed_at_ = Clock::time_point::max();

  State state_ = State::kOpening;
  RequestReader reader_;
  std::string in_;  // bytes that the reader has not taken
  bool is_reading_ = false, is_advancing_ = false, is_shut_ = false;
  bool has_served_ = false;   // the time of the first head runs from the accept
  Clock::time_point since_;   // of the state; in kHead: of its first byte
  size_t num_counted_ = 0;    // of owner_->body_bytes
  size_t num_discarded_ = 0;  // in kClosing

  // The request that is answered, without its body.
  HttpRequest request_;
  Clock::time_point head_at_, whole_at_;
  std::shared_ptr<HttpReply::Exchange> exchange_;
  int status_ = 0;  // 0: not begun
  std::string error_code_;
  bool closes_ = false, in_chunks_ = false, has_ended_ = false, is_without_body_ = false;

  std::string out_;  // from num_sent_ on: what the socket has not taken
  size_t num_sent_ = 0;
  bool is_writing_ = false, is_in_call_ = false;
  Clock::time_point progress_at_;
};

}  // namespace quire
