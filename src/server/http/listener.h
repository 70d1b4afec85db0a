// Listener: the socket that a server listens at: an address and a port, or a file.
//
// Threading: one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"

namespace quire {

struct AcceptedSocket {
  int descriptor = -1;  // the caller's; does not block
  int family = 0;
  std::string address;  // "127.0.0.1", "::1", "unix"
  std::string group;    // what counts as one address: an IPv6 /64; empty for files
};

class Listener {
 public:
  // Listens. A `unix_path` is made with mode 0600; one that is there is taken over only if it is a
  // socket at which nobody listens. kInvalidArgument, with what to change.
  static StatusOr<std::unique_ptr<Listener>> Create(const std::string& host, uint16_t port,
                                                    const std::string& unix_path);
  ~Listener() { Close(); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // Refuses new clients; removes the file if it is still this one's.
  void Close();

  int descriptor() const { return descriptor_; }
  const std::string& address() const { return address_; }  // "127.0.0.1:8000", "[::1]:8000", a path
  uint16_t port() const { return port_; }                  // 0 for a file

  // The next connection; descriptor -1 and errno if there is none now.
  AcceptedSocket Accept();

 private:
  Listener() = default;
  Status Bind(const std::string& host, uint16_t port);
  Status BindFile(const std::string& path);
  Status Listen();

  int descriptor_ = -1;
  std::string address_, path_;
  uint16_t port_ = 0;
  uint64_t file_device_ = 0, file_number_ = 0;
};

}  // namespace quire
