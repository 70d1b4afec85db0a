#include "server/http/listener.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace quire {
namespace {

constexpr int kBacklog = 1024;
// The kernel's share of what is held for a client that does not read (the kernel doubles it for its
// own bookkeeping). TCP's accepted sockets take it over from the one that listens.
constexpr int kSendBufferBytes = 64 << 10;

Status CannotListen(const std::string& where, const std::string& why) {
  return {StatusCode::kInvalidArgument, "cannot listen at " + where + ": " + why};
}

std::string ErrnoText() { return std::strerror(errno); }

sockaddr* Any(sockaddr_storage* address) { return reinterpret_cast<sockaddr*>(address); }

std::string HostText(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &v4.sin_addr, text, sizeof(text));
  } else if (address.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    // An IPv4 client of a socket that takes both is named as such.
    if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
      inet_ntop(AF_INET, v6.sin6_addr.s6_addr + 12, text, sizeof(text));
    } else {
      inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof(text));
    }
  }
  return text;
}

uint16_t PortOf(const sockaddr_storage& address) {
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                   : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

// One client has a whole IPv6 /64.
std::string GroupOf(const sockaddr_storage& address, const std::string& text) {
  if (address.ss_family != AF_INET6) return text;
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) return text;
  return {reinterpret_cast<const char*>(v6.sin6_addr.s6_addr), 8};
}

}  // namespace

StatusOr<std::unique_ptr<Listener>> Listener::Create(const std::string& host, uint16_t port,
                                                     const std::string& unix_path) {
  std::unique_ptr<Listener> listener(new Listener);
  QUIRE_RETURN_IF_ERROR(unix_path.empty() ? listener->Bind(host, port)
                                          : listener->BindFile(unix_path));
  return listener;
}

void Listener::Close() {
  if (descriptor_ < 0) return;
  close(descriptor_);
  descriptor_ = -1;
  struct stat file {};
  if (!path_.empty() && lstat(path_.c_str(), &file) == 0 && file.st_dev == file_device_ &&
      file.st_ino == file_number_)
    unlink(path_.c_str());
}

Status Listener::Listen() {
  setsockopt(descriptor_, SOL_SOCKET, SO_SNDBUF, &kSendBufferBytes, sizeof(kSendBufferBytes));
  if (listen(descriptor_, kBacklog) != 0) return CannotListen(address_, ErrnoText());
  return OkStatus();
}

Status Listener::Bind(const std::string& host, uint16_t port) {
  std::string name = host;  // "[::1]" is taken too
  if (name.size() > 2 && name.front() == '[' && name.back() == ']')
    name = name.substr(1, name.size() - 2);
  const bool is_v6 = name.find(':') != std::string::npos;
  address_ = (is_v6 ? "[" + name + "]" : name) + ":" + std::to_string(port);

  addrinfo wanted{}, *found = nullptr;
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  if (const int error = getaddrinfo(name.c_str(), std::to_string(port).c_str(), &wanted, &found);
      error != 0)
    return CannotListen(
        address_, std::string(gai_strerror(error)) + ": use an address of this machine for --host");
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
  descriptor_ = socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (descriptor_ < 0) return CannotListen(address_, ErrnoText());
  const int on = 1;
  setsockopt(descriptor_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  setsockopt(descriptor_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  if (bind(descriptor_, found->ai_addr, found->ai_addrlen) != 0) {
    const bool is_taken = errno == EADDRINUSE;
    return CannotListen(address_, is_taken ? "the port is taken: use another --port"
                                           : ErrnoText() + ": use another --host or --port");
  }
  QUIRE_RETURN_IF_ERROR(Listen());
  sockaddr_storage bound{};
  socklen_t len = sizeof(bound);
  getsockname(descriptor_, Any(&bound), &len);
  port_ = PortOf(bound);
  const std::string text = HostText(bound);
  address_ = (bound.ss_family == AF_INET6 ? "[" + text + "]" : text) + ":" + std::to_string(port_);
  return OkStatus();
}

Status Listener::BindFile(const std::string& path) {
  address_ = path;
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (path.size() >= sizeof(name.sun_path))
    return CannotListen(
        path, "the path is longer than " + std::to_string(sizeof(name.sun_path) - 1) + " bytes");
  std::memcpy(name.sun_path, path.c_str(), path.size());
  const auto* any = reinterpret_cast<const sockaddr*>(&name);
  descriptor_ = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (descriptor_ < 0) return CannotListen(path, ErrnoText());

  struct stat file {};
  if (lstat(path.c_str(), &file) == 0) {
    if (!S_ISSOCK(file.st_mode))
      return CannotListen(path, "a file that is no socket is there: use another path");
    const int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const bool is_stale =
        probe >= 0 && connect(probe, any, sizeof(name)) != 0 && errno == ECONNREFUSED;
    if (probe >= 0) close(probe);
    if (!is_stale) return CannotListen(path, "another server listens there: use another path");
    unlink(path.c_str());
  }
  if (bind(descriptor_, any, sizeof(name)) != 0) return CannotListen(path, ErrnoText());
  // Nobody can connect before listen, so the file is never open to others.
  if (chmod(path.c_str(), S_IRUSR | S_IWUSR) != 0 || lstat(path.c_str(), &file) != 0)
    return CannotListen(path, ErrnoText());
  path_ = path;
  file_device_ = file.st_dev;
  file_number_ = file.st_ino;
  return Listen();
}

AcceptedSocket Listener::Accept() {
  AcceptedSocket accepted;
  sockaddr_storage peer{};
  socklen_t len = sizeof(peer);
  accepted.descriptor = accept4(descriptor_, Any(&peer), &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (accepted.descriptor < 0) return accepted;
  if (!path_.empty()) {
    accepted.family = AF_UNIX;
    accepted.address = "unix";
    setsockopt(accepted.descriptor, SOL_SOCKET, SO_SNDBUF, &kSendBufferBytes,
               sizeof(kSendBufferBytes));
    return accepted;
  }
  accepted.family = peer.ss_family;
  accepted.address = HostText(peer);
  accepted.group = GroupOf(peer, accepted.address);
  return accepted;
}

}  // namespace quire
