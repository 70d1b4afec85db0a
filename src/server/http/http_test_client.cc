#include "server/http/http_test_client.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "base/check.h"

namespace quire {

std::optional<HttpResponse> TestHandler::OnHead(HttpRequest& head) {
  head.note = std::make_shared<std::string>(head.Path());
  if (head.Path() == "/denied")
    return HttpResponse{.status = 401, .body = "no key", .error_code = "denied"};
  return std::nullopt;
}

void TestHandler::OnRequest(HttpRequest request, HttpReply reply) {
  ++num_requests;
  {
    const std::lock_guard lock(mutex_);
    last_request_ = request;
  }
  const std::string path = request.Path();
  if (path == "/hello") {
    reply.Send({.content_type = "text/plain", .body = "hello"});
  } else if (path == "/echo") {
    reply.Send({.content_type = "text/plain", .body = std::move(request.body)});
  } else if (on_request) {
    on_request(std::move(request), std::move(reply));
  } else {
    reply.Send({.status = 404, .body = "nothing here"});
  }
}

HttpResponse TestHandler::OnRefusal(int status, std::string_view code, std::string_view message) {
  return {.status = status, .body = std::string(code) + ": " + std::string(message)};
}

void TestHandler::OnRing() {
  ++num_rings;
  if (on_ring) on_ring();
}

void TestHandler::OnAnswered(const HttpRequest& request, const HttpOutcome& outcome) {
  QUIRE_CHECK(outcome.seconds >= 0);
  if (request.note != nullptr)
    QUIRE_CHECK(*static_cast<const std::string*>(request.note.get()) == request.Path());
  const std::lock_guard lock(mutex_);
  answered_.push_back(
      {request.Path(), request.id, outcome.status, std::string(outcome.error_code)});
  changed_.notify_all();
}

std::vector<TestHandler::Answered> TestHandler::WaitAnswered(size_t num) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::seconds(5), [&] { return answered_.size() >= num; });
  return answered_;
}

HttpRequest TestHandler::last_request() {
  const std::lock_guard lock(mutex_);
  return last_request_;
}

TestClient::TestClient(uint16_t port, const char* host, int receive_buffer, const char* from) {
  const bool is_v6 = std::strchr(host, ':') != nullptr;
  descriptor_ = socket(is_v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (receive_buffer > 0)
    setsockopt(descriptor_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof(receive_buffer));
  sockaddr_in v4{};
  if (from != nullptr) {
    v4.sin_family = AF_INET;
    inet_pton(AF_INET, from, &v4.sin_addr);
    QUIRE_CHECK(bind(descriptor_, reinterpret_cast<sockaddr*>(&v4), sizeof(v4)) == 0);
  }
  v4.sin_family = AF_INET;
  v4.sin_port = htons(port);
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  inet_pton(AF_INET, host, &v4.sin_addr);
  inet_pton(AF_INET6, host, &v6.sin6_addr);
  const int failed = is_v6 ? connect(descriptor_, reinterpret_cast<sockaddr*>(&v6), sizeof(v6))
                           : connect(descriptor_, reinterpret_cast<sockaddr*>(&v4), sizeof(v4));
  if (failed != 0) Close();
}

TestClient::TestClient(const std::string& unix_path) {
  descriptor_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::snprintf(name.sun_path, sizeof(name.sun_path), "%s", unix_path.c_str());
  if (connect(descriptor_, reinterpret_cast<sockaddr*>(&name), sizeof(name)) != 0) Close();
}

TestClient::TestClient(TestClient&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), buffer_(std::move(other.buffer_)) {}

TestClient::~TestClient() { Close(); }

void TestClient::Close() {
  if (descriptor_ >= 0) close(std::exchange(descriptor_, -1));
}

void TestClient::Reset() {
  const linger now{1, 0};
  setsockopt(descriptor_, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
  Close();
}

void TestClient::ShutWrite() { shutdown(descriptor_, SHUT_WR); }

bool TestClient::Write(std::string_view text) {
  while (!text.empty()) {
    pollfd asked{descriptor_, POLLOUT, 0};
    if (poll(&asked, 1, 5'000) <= 0) return false;
    const ssize_t num = send(descriptor_, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (num < 0 && errno != EAGAIN) return false;
    if (num > 0) text.remove_prefix(num);
  }
  return true;
}

bool TestClient::Fill() {
  pollfd asked{descriptor_, POLLIN, 0};
  if (poll(&asked, 1, 5'000) <= 0) return false;
  char bytes[65536];
  const ssize_t num = recv(descriptor_, bytes, sizeof(bytes), 0);
  if (num <= 0) return false;
  buffer_.append(bytes, num);
  return true;
}

bool TestClient::ReadTo(std::string_view text) {
  while (buffer_.find(text) == std::string::npos)
    if (!Fill()) return false;
  return true;
}

bool TestClient::WaitClosed(std::chrono::milliseconds most) {
  const auto end = std::chrono::steady_clock::now() + most;
  while (std::chrono::steady_clock::now() < end) {
    pollfd asked{descriptor_, POLLIN, 0};
    if (poll(&asked, 1, 10) == 0) continue;
    char bytes[4096];
    const ssize_t num = recv(descriptor_, bytes, sizeof(bytes), 0);
    if (num <= 0) return true;
    buffer_.append(bytes, num);
  }
  return false;
}

namespace {

// Takes the next line off `text`, without its CRLF; null if there is none.
std::optional<std::string> TakeLine(std::string* text) {
  const size_t at = text->find("\r\n");
  if (at == std::string::npos) return std::nullopt;
  std::string line = text->substr(0, at);
  text->erase(0, at + 2);
  return line;
}

bool ParseHead(std::string head, TestAnswer* answer) {
  const auto first = TakeLine(&head);
  if (!first || first->size() < 13 || first->rfind("HTTP/1.1 ", 0) != 0 || (*first)[12] != ' ')
    return false;
  answer->status = std::atoi(first->c_str() + 9);
  while (const auto line = TakeLine(&head)) {
    if (line->empty()) return true;
    const size_t colon = line->find(": ");
    if (colon == std::string::npos) return false;
    answer->fields[line->substr(0, colon)] = line->substr(colon + 2);
  }
  return false;
}

}  // namespace

TestAnswer TestClient::Read(bool to_head) {
  TestAnswer answer;
  if (!ReadTo("\r\n\r\n")) return answer;
  const size_t end = buffer_.find("\r\n\r\n") + 4;
  if (!ParseHead(buffer_.substr(0, end), &answer)) return answer;
  buffer_.erase(0, end);
  answer.is_well_formed = true;
  if (to_head || answer.status < 200 || answer.status == 204) return answer;
  if (answer.fields.count("content-length") != 0) {
    const size_t len = std::strtoull(answer.fields["content-length"].c_str(), nullptr, 10);
    while (buffer_.size() < len && Fill()) {
    }
    answer.is_well_formed = buffer_.size() >= len;
    answer.body = buffer_.substr(0, len);
    buffer_.erase(0, len);
  } else if (answer.fields.count("transfer-encoding") != 0) {
    answer.is_well_formed = false;
    while (ReadTo("\r\n")) {
      const size_t len = std::strtoull(TakeLine(&buffer_)->c_str(), nullptr, 16);
      while (buffer_.size() < len + 2 && Fill()) {
      }
      if (buffer_.size() < len + 2 || buffer_.compare(len, 2, "\r\n") != 0) break;
      answer.body += buffer_.substr(0, len);
      buffer_.erase(0, len + 2);
      answer.is_well_formed = len == 0;
      if (len == 0) break;
      ++answer.num_chunks;
    }
  } else {
    while (Fill()) {
    }
    answer.body = std::exchange(buffer_, {});
  }
  return answer;
}

std::string Get(std::string_view target, std::string_view more_fields) {
  return "GET " + std::string(target) + " HTTP/1.1\r\nHost: a\r\n" + std::string(more_fields) +
         "\r\n";
}

std::string Post(std::string_view target, std::string_view body, std::string_view more_fields) {
  return "POST " + std::string(target) +
         " HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" +
         std::string(more_fields) + "\r\n" + std::string(body);
}

std::unique_ptr<HttpServer> StartServer(HttpHandler* handler, const HttpLimits& limits) {
  HttpOptions options;
  options.port = 0;
  options.limits = limits;
  auto server = HttpServer::Create(options, handler);
  QUIRE_CHECK(server.ok());
  (*server)->Run();
  return std::move(*server);
}

size_t NumDescriptors() {
  size_t num = 0;
  if (DIR* folder = opendir("/proc/self/fd")) {
    while (readdir(folder) != nullptr) ++num;
    closedir(folder);
  }
  return num;
}

size_t ResidentBytes() {
  size_t total = 0, resident = 0;
  if (FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%zu %zu", &total, &resident) != 2) resident = 0;
    std::fclose(file);
  }
  return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

bool WaitFor(const std::function<bool()>& condition, std::chrono::milliseconds most) {
  const auto end = std::chrono::steady_clock::now() + most;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace quire
