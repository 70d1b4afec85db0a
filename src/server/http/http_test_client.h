// For the tests of HTTP: a handler that records and answers as told, and a client of bare sockets
// that can misbehave.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/http/http_server.h"

namespace quire {

// Answers GET /hello with "hello", POST /echo with the body, /head with `early_status` before the
// body; hands all else to `on_request`, on the HTTP thread.
class TestHandler : public HttpHandler {
 public:
  struct Answered {
    std::string path, id;
    int status;
    std::string error_code;
  };

  std::optional<HttpResponse> OnHead(HttpRequest& head) override;
  void OnRequest(HttpRequest request, HttpReply reply) override;
  HttpResponse OnRefusal(int status, std::string_view code, std::string_view message) override;
  void OnRing() override;
  void OnTick() override { ++num_ticks; }
  void OnAnswered(const HttpRequest& request, const HttpOutcome& outcome) override;
  void OnTrouble(std::string_view) override { ++num_troubles; }

  std::function<void(HttpRequest, HttpReply)> on_request;
  std::function<void()> on_ring;
  std::atomic<int> num_requests{0}, num_rings{0}, num_ticks{0}, num_troubles{0};

  // Waits until `num` answers were counted, at most 5 s.
  std::vector<Answered> WaitAnswered(size_t num);
  HttpRequest last_request();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Answered> answered_;
  HttpRequest last_request_;
};

struct TestAnswer {
  int status = 0;  // 0: none came
  std::map<std::string, std::string> fields;
  std::string body;  // chunks are joined
  int num_chunks = 0;
  bool is_well_formed = false;  // as HTTP, and whole
};

// A socket with a receive time-out of 5 s; -1 means that it could not connect.
class TestClient {
 public:
  explicit TestClient(uint16_t port, const char* host = "127.0.0.1", int receive_buffer = 0,
                      const char* from = nullptr);
  explicit TestClient(const std::string& unix_path);
  // Of a socket that is connected.
  static TestClient Of(int descriptor) { return TestClient(Adopted{descriptor}); }
  ~TestClient();
  TestClient(TestClient&& other) noexcept;
  TestClient(const TestClient&) = delete;
  TestClient& operator=(const TestClient&) = delete;

  bool is_connected() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }
  // False if the server has closed.
  bool Write(std::string_view text);
  // One answer, with what was read beyond it kept for the next. `to_head`: of a HEAD request.
  TestAnswer Read(bool to_head = false);
  // Reads until the buffer holds `text` (and keeps it); false at the end or after 5 s.
  bool ReadTo(std::string_view text);
  // True when the end of the stream (or a reset) comes within `most`.
  bool WaitClosed(std::chrono::milliseconds most = std::chrono::milliseconds(5'000));
  const std::string& unread() const { return buffer_; }
  // One more receive; false at the end.
  bool Fill();
  void ShutWrite();
  void Reset();  // closes with RST
  void Close();

 private:
  struct Adopted {
    int descriptor;
  };
  explicit TestClient(Adopted adopted) : descriptor_(adopted.descriptor) {}

  int descriptor_ = -1;
  std::string buffer_;
};

std::string Get(std::string_view target, std::string_view more_fields = {});
std::string Post(std::string_view target, std::string_view body, std::string_view more_fields = {});

// A server on a free port with `handler`; running.
std::unique_ptr<HttpServer> StartServer(HttpHandler* handler, const HttpLimits& limits = {});

size_t NumDescriptors();  // of this process
size_t ResidentBytes();
bool WaitFor(const std::function<bool()>& condition,
             std::chrono::milliseconds most = std::chrono::milliseconds(5'000));

}  // namespace quire
