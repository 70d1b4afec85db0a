// Connection's answers: what a reply's calls put on the socket, and how an answer ends.
#include <boost/asio/post.hpp>
#include <utility>

#include "server/http/connection.h"
#include "server/http/response_text.h"

namespace quire {
namespace {

constexpr size_t kFrameBytes = size_t{1} << 20;  // of the shared text, between answers
constexpr int kClientGone = 499;                 // in the log only

// While it lives, what happens inside is told to the handler later: it is in the middle of a call.
class InCall {
 public:
  explicit InCall(bool* flag) : flag_(flag), was_(*flag) { *flag_ = true; }
  ~InCall() { *flag_ = was_; }
  InCall(const InCall&) = delete;
  InCall& operator=(const InCall&) = delete;

 private:
  bool* flag_;
  bool was_;
};

}  // namespace

void Connection::BeginAnswer(const HttpResponse& response, bool is_whole) {
  ForgetBody();
  status_ = response.status;
  error_code_ = response.error_code;
  const bool is_http10 = reader_.is_http10();
  is_without_body_ = request_.method == "HEAD" || !HasBody(status_);
  in_chunks_ = !is_whole && !is_http10;
  closes_ =
      response.closes || !reader_.keeps_alive() || owner_->is_stopping || (!is_whole && is_http10);
  if (closes_) in_ = {};
  ResponseForm form;
  form.keeps_alive = !closes_;
  form.is_http10 = is_http10;
  if (is_whole) form.length = response.body.size();
  form.id = request_.id;
  owner_->handler->AddFields(request_, &form.fields);
  form.date = owner_->Date();
  form.processing_ms = std::chrono::duration<double, std::milli>(Clock::now() - whole_at_).count();
  owner_->frame.clear();
  AppendHead(response, form, &owner_->frame);
}

void Connection::Send(const HttpResponse& response) {
  if (state_ != State::kAnswering || status_ != 0) return;
  const auto keep = self();
  const InCall in_call(&is_in_call_);
  BeginAnswer(response, true);
  if (exchange_ != nullptr) exchange_->has_started = true;
  if (!is_without_body_) owner_->frame += response.body;
  has_ended_ = true;
  Put(owner_->frame);
  EndAnswer();
}

void Connection::StartPieces(const HttpResponse& response) {
  if (state_ != State::kAnswering || status_ != 0) return;
  const auto keep = self();
  const InCall in_call(&is_in_call_);
  BeginAnswer(response, false);
  exchange_->has_started = true;
  if (!is_without_body_ && !response.body.empty()) {
    if (in_chunks_) {
      AppendChunk(response.body, &owner_->frame);
    } else {
      owner_->frame += response.body;
    }
  }
  Put(owner_->frame);
  Arm();
}

void Connection::WritePiece(std::string_view piece) {
  if (state_ != State::kAnswering || status_ == 0 || has_ended_) return;
  if (is_without_body_ || piece.empty()) return;
  const auto keep = self();
  const InCall in_call(&is_in_call_);
  if (!in_chunks_) {
    Put(piece);
  } else {
    owner_->frame.clear();
    AppendChunk(piece, &owner_->frame);
    Put(owner_->frame);
  }
  Arm();
}

void Connection::FinishPieces(std::string_view last_piece) {
  if (state_ != State::kAnswering || status_ == 0 || has_ended_) return;
  const auto keep = self();
  const InCall in_call(&is_in_call_);
  has_ended_ = true;
  owner_->frame.clear();
  if (!is_without_body_) {
    if (!in_chunks_) {
      owner_->frame += last_piece;
    } else {
      if (!last_piece.empty()) AppendChunk(last_piece, &owner_->frame);
      AppendLastChunk(&owner_->frame);
    }
  }
  Put(owner_->frame);
  EndAnswer();
}

void Connection::EndAnswer() {
  if (state_ != State::kAnswering) return;  // lost on the way
  if (unsent_bytes() == 0) {
    AnswerDone();
  } else {
    Arm();
  }
}

// The socket has all of it: the client may leave now, and nobody calls that gone.
void Connection::AnswerDone() {
  const double seconds = std::chrono::duration<double>(Clock::now() - head_at_).count();
  if (exchange_ != nullptr) {
    exchange_->connection = nullptr;
    exchange_->on_sent = nullptr;
    exchange_->on_gone = nullptr;
    exchange_.reset();
  }
  owner_->handler->OnAnswered(request_,
                              {.status = status_, .seconds = seconds, .error_code = error_code_});
  status_ = 0;
  has_ended_ = false;
  has_served_ = true;
  if (closes_ || owner_->is_stopping) return Shut();
  reader_.Reset();
  request_ = {};
  if (in_.empty()) in_ = {};  // a connection that waits holds no buffers
  out_ = {};
  if (owner_->frame.capacity() > kFrameBytes) owner_->frame = {};
  state_ = State::kHead;
  since_ = Clock::now();
  Arm();
  if (is_advancing_) return;
  if (in_.empty()) return ReadOn();
  boost::asio::post(owner_->io, [keep = self()] { keep->Advance(); });
}

void Connection::Put(std::string_view bytes) {
  if (bytes.empty()) return;
  const size_t num_before = unsent_bytes();
  if (num_before == 0) {
    progress_at_ = Clock::now();
    ErrorCode error;
    const size_t num = is_writing_ ? 0 : stream_->TryWrite(bytes, &error);
    if (error) return Lose(GoneReason::kReset);
    bytes.remove_prefix(num);
    if (bytes.empty()) return;
  }
  if (num_sent_ > 0) {
    out_.erase(0, num_sent_);
    num_sent_ = 0;
  }
  out_.append(bytes);
  if (num_before > 0 && unsent_bytes() > owner_->limits.max_unsent_bytes && !has_ended_)
    return Lose(GoneReason::kStalled);
  if (is_writing_) return;
  is_writing_ = true;
  stream_->Write(self());
}

void Connection::OnWritten(const ErrorCode& error, size_t num_bytes) {
  is_writing_ = false;
  if (state_ == State::kClosed) return;
  if (error) {
    if (state_ != State::kAnswering) return Close();
    return Lose(GoneReason::kReset);
  }
  num_sent_ += num_bytes;
  if (num_bytes > 0) progress_at_ = Clock::now();
  if (unsent_bytes() > 0) {
    is_writing_ = true;
    return stream_->Write(self());
  }
  num_sent_ = 0;
  if (out_.capacity() > owner_->limits.max_unsent_bytes) {
    out_ = {};
  } else {
    out_.clear();
  }
  OnAllSent();
}

void Connection::OnAllSent() {
  if (state_ != State::kAnswering || status_ == 0) return;
  if (has_ended_) return AnswerDone();
  if (exchange_ == nullptr || !exchange_->on_sent) return;
  // The callback may end the answer, and watch anew: it is not run where it can be overwritten.
  const auto exchange = exchange_;
  auto on_sent = std::exchange(exchange->on_sent, nullptr);
  on_sent();
  if (exchange->connection != nullptr && !exchange->on_sent) exchange->on_sent = std::move(on_sent);
}

void Connection::Drop(GoneReason reason) {
  if (state_ == State::kAnswering) {
    Lose(reason);
  } else {
    Close();
  }
}

void Connection::Lose(GoneReason reason) {
  const auto keep = self();
  if (exchange_ != nullptr) {
    exchange_->connection = nullptr;
    exchange_->is_gone = true;
  }
  Close();
  if (is_in_call_) {
    boost::asio::post(owner_->io, [keep, reason] { keep->TellGone(reason); });
  } else {
    TellGone(reason);
  }
}

void Connection::TellGone(GoneReason reason) {
  if (const auto exchange = std::exchange(exchange_, nullptr)) {
    const auto on_gone = std::exchange(exchange->on_gone, nullptr);
    exchange->on_sent = nullptr;
    if (on_gone) on_gone(reason);
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - head_at_).count();
  owner_->handler->OnAnswered(request_, {.status = kClientGone, .seconds = seconds});
}

void Connection::Shut() {
  state_ = State::kClosing;
  since_ = Clock::now();
  in_ = {};
  reader_.Reset();  // a body that was refused
  stream_->Shut(self());
  Arm();
}

void Connection::OnShut() {
  if (state_ != State::kClosing) return;
  is_shut_ = true;
  ReadOn();
}

void Connection::Close() {
  if (state_ == State::kClosed) return;
  const auto keep = self();
  ForgetBody();
  state_ = State::kClosed;
  stream_->Close();
  timer_.cancel();
  in_ = {};
  owner_->OnClosed(this);
}

// HttpReply -------------------------------------------------------------------------------------

void HttpReply::Send(const HttpResponse& response) {
  if (exchange_->connection != nullptr) exchange_->connection->Send(response);
}

void HttpReply::Start(const HttpResponse& response) {
  if (exchange_->connection != nullptr) exchange_->connection->StartPieces(response);
}

void HttpReply::Write(std::string_view piece) {
  if (exchange_->connection != nullptr) exchange_->connection->WritePiece(piece);
}

void HttpReply::Finish(std::string_view last_piece) {
  if (exchange_->connection != nullptr) exchange_->connection->FinishPieces(last_piece);
}

size_t HttpReply::unsent_bytes() const {
  return exchange_->connection != nullptr ? exchange_->connection->unsent_bytes() : 0;
}

bool HttpReply::has_started() const { return exchange_->has_started; }

bool HttpReply::is_gone() const { return exchange_->is_gone; }

void HttpReply::Watch(std::function<void()> on_sent, std::function<void(GoneReason)> on_gone) {
  if (exchange_->connection == nullptr) return;
  exchange_->on_sent = std::move(on_sent);
  exchange_->on_gone = std::move(on_gone);
}

}  // namespace quire
