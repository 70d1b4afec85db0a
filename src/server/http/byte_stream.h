// ByteStream: the bytes of one connection, plain or TLS, as operations that end later.
//
// At most one Open, one Read, one Write and one Shut at a time (a read and a write together are
// fine). Each keeps its user alive until the user has been told.
//
// Threading: the thread of the io_context.
#pragma once

#include <array>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl/context.hpp>
#include <memory>
#include <string_view>

namespace quire {

using ErrorCode = boost::system::error_code;
using StreamSocket = boost::asio::generic::stream_protocol::socket;

// What plain streams read into: lent to the user for the length of OnRead, so that a connection
// that waits holds no buffer.
using ReadScratch = std::array<char, size_t{64} << 10>;

class ByteStream {
 public:
  class User {
   public:
    virtual ~User() = default;
    virtual void OnOpen(const ErrorCode& error) = 0;
    // The other side's end is boost::asio::error::eof. `bytes` lives as long as the call.
    virtual void OnRead(const ErrorCode& error, std::string_view bytes) = 0;
    // What is to be written, when the socket takes bytes.
    virtual std::string_view Unsent() = 0;
    virtual void OnWritten(const ErrorCode& error, size_t num_bytes) = 0;
    virtual void OnShut() = 0;
  };

  virtual ~ByteStream() = default;

  virtual void Open(std::shared_ptr<User> user) = 0;
  virtual void Read(size_t most, std::shared_ptr<User> user) = 0;
  // What the socket takes at once; 0 if it would block, or if this kind has to wait.
  virtual size_t TryWrite(std::string_view bytes, ErrorCode* error) = 0;
  // Some of the user's Unsent().
  virtual void Write(std::shared_ptr<User> user) = 0;
  // Says goodbye: nothing is written after it. After OnShut what the peer still sends is read with
  // ReadRaw, as bytes that mean nothing.
  virtual void Shut(std::shared_ptr<User> user) = 0;
  virtual void ReadRaw(std::shared_ptr<User> user) = 0;
  // All operations end with an error.
  virtual void Close() = 0;
  virtual int descriptor() = 0;
};

std::unique_ptr<ByteStream> MakePlainStream(StreamSocket socket, ReadScratch* scratch);
// Holds 16 KiB each way of its own, and OpenSSL's buffers (about 70 KiB in all).
std::unique_ptr<ByteStream> MakeTlsStream(StreamSocket socket, boost::asio::ssl::context* context);

}  // namespace quire
