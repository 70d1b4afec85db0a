#include "server/http/connection.h"

#include <poll.h>
#include <sys/random.h>

#include <algorithm>
#include <boost/asio/error.hpp>
#include <utility>

namespace quire {
namespace {

// How long, and for how many bytes, a client that was refused may go on sending.
constexpr std::chrono::milliseconds kClosingTime{1'000};
constexpr size_t kClosingBytes = size_t{64} << 20;

bool IsRequestId(std::string_view id) {
  if (id.empty() || id.size() > 128) return false;
  return std::all_of(id.begin(), id.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == '_' || c == '-';
  });
}

std::string MakeRequestId() {
  unsigned char bytes[16] = {};
  (void)!getrandom(bytes, sizeof(bytes), 0);
  std::string id = "req_";
  for (const unsigned char byte : bytes) {
    id += "0123456789abcdef"[byte >> 4];
    id += "0123456789abcdef"[byte & 15];
  }
  return id;
}

}  // namespace

Connection::Connection(ConnectionOwner* owner, std::unique_ptr<ByteStream> stream,
                       std::string peer_address)
    : owner_(owner),
      stream_(std::move(stream)),
      peer_address_(std::move(peer_address)),
      timer_(owner->io),
      reader_(owner->limits),
      since_(Clock::now()) {}

void Connection::Start() {
  stream_->Open(self());
  Arm();
}

void Connection::StartRefused() {
  state_ = State::kHead;
  Refuse(503, "too_many_connections", "too many connections are open");
  ReadOn();
  Arm();
}

void Connection::OnOpen(const ErrorCode& error) {
  if (state_ != State::kOpening) return;
  if (error) return Close();
  state_ = State::kHead;
  ReadOn();
  Arm();
}

void Connection::OnRead(const ErrorCode& error, std::string_view bytes) {
  is_reading_ = false;
  if (state_ == State::kClosed) return;
  if (error) {
    if (state_ != State::kAnswering) return Close();
    return Lose(error == boost::asio::error::eof ? GoneReason::kClosed : GoneReason::kReset);
  }
  if (state_ == State::kClosing) {
    num_discarded_ += bytes.size();
    if (num_discarded_ > kClosingBytes) return Close();
    return ReadOn();
  }
  if (state_ == State::kAnswering && closes_) return ReadOn();  // no request comes after this one
  if (state_ == State::kHead && in_.empty() && has_served_) since_ = Clock::now();
  in_.append(bytes);
  if (state_ == State::kAnswering) return ReadOn();
  Advance();
}

void Connection::ReadOn() {
  if (is_reading_ || state_ == State::kClosed) return;
  size_t most = owner_->scratch.size();
  if (state_ == State::kHead || (state_ == State::kAnswering && !closes_)) {
    const size_t kept = std::max(owner_->limits.max_ahead_bytes, owner_->limits.head_bytes + 1);
    if (in_.size() >= kept) return;
    most = std::min(most, kept - in_.size());
  }
  if (state_ == State::kClosing && !is_shut_) return;
  is_reading_ = true;
  if (state_ == State::kClosing) {
    stream_->ReadRaw(self());
  } else {
    stream_->Read(most, self());
  }
}

void Connection::CheckPaused() {
  if (state_ != State::kAnswering || is_reading_) return;
  pollfd asked{stream_->descriptor(), POLLRDHUP, 0};
  if (poll(&asked, 1, 0) > 0 && (asked.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0)
    Lose((asked.revents & POLLERR) != 0 ? GoneReason::kReset : GoneReason::kClosed);
}

void Connection::Advance() {
  if (is_advancing_) return;
  is_advancing_ = true;
  try {
    TakeRequests();
  } catch (...) {  // no memory: this client's loss alone
    is_advancing_ = false;
    Drop(GoneReason::kReset);
    throw;
  }
  is_advancing_ = false;
  ReadOn();
  Arm();
}

void Connection::TakeRequests() {
  while (state_ == State::kHead || state_ == State::kBody) {
    const RequestReader::Result result = reader_.Read(in_);
    in_.erase(0, result.num_taken);
    CountBody();
    if (result.step == RequestReader::Step::kHead) {
      TakeHead();
    } else if (result.step == RequestReader::Step::kWhole) {
      TakeWhole();
    } else if (result.step == RequestReader::Step::kRefused) {
      const HttpRefusal refusal = reader_.refusal();
      Refuse(refusal.status, refusal.code, refusal.message);
    } else if (owner_->body_bytes > owner_->limits.all_body_bytes && reader_.body_bytes() > 0) {
      Refuse(503, "overloaded", "the bodies of all requests together are too large");
    } else {
      break;
    }
  }
}

void Connection::NameRequest() {
  request_ = std::move(reader_.head());
  request_.peer_address = peer_address_;
  const auto id = request_.Field("x-request-id");
  request_.id = id && IsRequestId(*id) ? std::string(*id) : MakeRequestId();
}

void Connection::TakeHead() {
  head_at_ = since_ = Clock::now();
  state_ = State::kBody;
  NameRequest();
  if (reader_.content_length() > 0 &&
      owner_->body_bytes + reader_.content_length() > owner_->limits.all_body_bytes)
    return Refuse(503, "overloaded", "the bodies of all requests together are too large");
  if (std::optional<HttpResponse> early = owner_->handler->OnHead(request_)) {
    early->closes = early->closes || reader_.has_body();
    state_ = State::kAnswering;
    whole_at_ = head_at_;
    return Send(*early);
  }
  if (reader_.expects_continue() && reader_.has_body() && in_.empty())
    Put("HTTP/1.1 100 Continue\r\n\r\n");
}

void Connection::TakeWhole() {
  state_ = State::kAnswering;
  whole_at_ = Clock::now();
  exchange_ = std::make_shared<HttpReply::Exchange>();
  exchange_->connection = this;
  HttpRequest whole = request_;
  whole.body = reader_.TakeBody();
  owner_->handler->OnRequest(std::move(whole), HttpReply(exchange_));
}

void Connection::Refuse(int status, std::string_view code, const std::string& message) {
  if (state_ == State::kHead) {
    NameRequest();
    head_at_ = Clock::now();
  }
  state_ = State::kAnswering;
  whole_at_ = head_at_;
  in_.clear();
  HttpResponse response = owner_->handler->OnRefusal(status, code, message);
  response.closes = true;
  Send(response);
}

void Connection::CountBody() {
  const size_t num = reader_.body_bytes();
  if (num > num_counted_) {
    owner_->body_bytes += num - num_counted_;
    num_counted_ = num;
  }
}

void Connection::ForgetBody() {
  owner_->body_bytes -= num_counted_;
  num_counted_ = 0;
}

void Connection::CloseIfIdle() {
  if (state_ == State::kOpening || state_ == State::kClosing ||
      (state_ == State::kHead && in_.empty()))
    Close();
}

Connection::Clock::time_point Connection::Deadline() const {
  const HttpLimits& limits = owner_->limits;
  Clock::time_point deadline = Clock::time_point::max();
  switch (state_) {
    case State::kOpening:
      return since_ + limits.head_time;
    case State::kHead:
      return since_ + (in_.empty() && has_served_ ? limits.idle : limits.head_time);
    case State::kBody: {
      // On time, or fast enough on the whole.
      deadline = since_ + limits.body_time;
      if (limits.body_bytes_per_second > 0)
        deadline =
            std::max(deadline, since_ + std::chrono::milliseconds(reader_.body_bytes() * 1000 /
                                                                  limits.body_bytes_per_second));
      break;
    }
    case State::kAnswering:
      break;
    case State::kClosing:
      return since_ + kClosingTime;
    case State::kClosed:
      return deadline;
  }
  if (unsent_bytes() > 0) deadline = std::min(deadline, progress_at_ + limits.write_stall);
  return deadline;
}

// A timer that is set for earlier is left alone: it looks again when it fires.
void Connection::Arm() {
  const Clock::time_point deadline = Deadline();
  if (state_ == State::kClosed || deadline >= armed_at_) return;
  armed_at_ = deadline;
  timer_.expires_at(deadline);
  timer_.async_wait([keep = self()](const ErrorCode& error) {
    if (error || keep->state_ == State::kClosed) return;
    keep->armed_at_ = Clock::time_point::max();
    if (Clock::now() >= keep->Deadline()) keep->OnDeadline();
    keep->Arm();
  });
}

void Connection::OnDeadline() {
  switch (state_) {
    case State::kHead:
      // A client that has sent nothing gets nothing.
      if (in_.empty()) return Close();
      return Refuse(408, "request_timeout", "the head did not come in time");
    case State::kBody:
      if (unsent_bytes() > 0) return Close();
      return Refuse(408, "request_timeout", "the body did not come in time");
    case State::kAnswering:
      return Lose(GoneReason::kStalled);
    default:
      return Close();
  }
}

}  // namespace quire
