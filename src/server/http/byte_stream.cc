#include "server/http/byte_stream.h"

#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <utility>

namespace quire {
namespace {

ErrorCode LastError() { return {errno, boost::system::system_category()}; }

bool WouldBlock(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

// The reads and writes of a bare socket: wait for it, then one call that does not block.
class PlainStream : public ByteStream {
 public:
  PlainStream(StreamSocket socket, ReadScratch* scratch)
      : socket_(std::move(socket)), scratch_(scratch) {}

  void Open(std::shared_ptr<User> user) override {
    boost::asio::post(socket_.get_executor(), [user = std::move(user)] { user->OnOpen({}); });
  }

  void Read(size_t most, std::shared_ptr<User> user) override {
    socket_.async_wait(StreamSocket::wait_read,
                       [this, most, user = std::move(user)](const ErrorCode& error) mutable {
                         if (error) return user->OnRead(error, {});
                         const ssize_t num = ::recv(socket_.native_handle(), scratch_->data(),
                                                    std::min(most, scratch_->size()), 0);
                         if (num > 0) {
                           user->OnRead({}, {scratch_->data(), static_cast<size_t>(num)});
                         } else if (num == 0) {
                           user->OnRead(boost::asio::error::eof, {});
                         } else if (WouldBlock(errno)) {
                           Read(most, std::move(user));
                         } else {
                           user->OnRead(LastError(), {});
                         }
                       });
  }

  size_t TryWrite(std::string_view bytes, ErrorCode* error) override {
    const ssize_t num = ::send(socket_.native_handle(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (num >= 0) return static_cast<size_t>(num);
    if (!WouldBlock(errno)) *error = LastError();
    return 0;
  }

  void Write(std::shared_ptr<User> user) override {
    socket_.async_wait(StreamSocket::wait_write,
                       [this, user = std::move(user)](const ErrorCode& waited) {
                         ErrorCode error = waited;
                         const size_t num = error ? 0 : TryWrite(user->Unsent(), &error);
                         user->OnWritten(error, num);
                       });
  }

  void Shut(std::shared_ptr<User> user) override {
    ErrorCode ignored;
    socket_.shutdown(StreamSocket::shutdown_send, ignored);
    boost::asio::post(socket_.get_executor(), [user = std::move(user)] { user->OnShut(); });
  }

  void ReadRaw(std::shared_ptr<User> user) override { Read(scratch_->size(), std::move(user)); }

  void Close() override {
    ErrorCode ignored;
    socket_.close(ignored);
  }

  int descriptor() override { return socket_.native_handle(); }

 private:
  StreamSocket socket_;
  ReadScratch* scratch_;
};

class TlsStream : public ByteStream {
 public:
  TlsStream(StreamSocket socket, boost::asio::ssl::context* context)
      : stream_(std::move(socket), *context) {}

  void Open(std::shared_ptr<User> user) override {
    stream_.async_handshake(
        boost::asio::ssl::stream_base::server,
        [user = std::move(user)](const ErrorCode& error) { user->OnOpen(error); });
  }

  void Read(size_t most, std::shared_ptr<User> user) override {
    stream_.async_read_some(
        boost::asio::buffer(in_.data(), std::min(most, in_.size())),
        [this, user = std::move(user)](const ErrorCode& error, size_t num) {
          // An end without TLS's goodbye is an end.
          const bool is_cut = error == boost::asio::ssl::error::stream_truncated;
          user->OnRead(is_cut ? ErrorCode(boost::asio::error::eof) : error, {in_.data(), num});
        });
  }

  size_t TryWrite(std::string_view, ErrorCode*) override { return 0; }

  void Write(std::shared_ptr<User> user) override {
    const std::string_view bytes = user->Unsent();
    // One record, copied: the caller's text may move while OpenSSL writes.
    const size_t num = std::min(bytes.size(), out_.size());
    std::copy_n(bytes.data(), num, out_.data());
    boost::asio::async_write(stream_, boost::asio::buffer(out_.data(), num),
                             [user = std::move(user)](const ErrorCode& error, size_t num_bytes) {
                               user->OnWritten(error, num_bytes);
                             });
  }

  void Shut(std::shared_ptr<User> user) override {
    stream_.async_shutdown([this, user = std::move(user)](const ErrorCode&) {
      ErrorCode ignored;
      stream_.lowest_layer().shutdown(StreamSocket::shutdown_send, ignored);
      user->OnShut();
    });
  }

  void ReadRaw(std::shared_ptr<User> user) override {
    stream_.next_layer().async_read_some(
        boost::asio::buffer(in_), [this, user = std::move(user)](const ErrorCode& error, size_t n) {
          user->OnRead(error, {in_.data(), n});
        });
  }

  void Close() override {
    ErrorCode ignored;
    stream_.lowest_layer().close(ignored);
  }

  int descriptor() override { return stream_.lowest_layer().native_handle(); }

 private:
  static constexpr size_t kRecordBytes = 16 << 10;
  boost::asio::ssl::stream<StreamSocket> stream_;
  std::array<char, kRecordBytes> in_, out_;
};

}  // namespace

std::unique_ptr<ByteStream> MakePlainStream(StreamSocket socket, ReadScratch* scratch) {
  return std::make_unique<PlainStream>(std::move(socket), scratch);
}

std::unique_ptr<ByteStream> MakeTlsStream(StreamSocket socket, boost::asio::ssl::context* context) {
  return std::make_unique<TlsStream>(std::move(socket), context);
}

}  // namespace quire
