#include "cli/http_client.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace quire {
namespace {

using Clock = std::chrono::steady_clock;

// Answers one request with these pieces, with a pause after each.
class SlowServer {
 public:
  SlowServer(std::vector<std::string> pieces, std::chrono::milliseconds pause) {
    socket_ = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(socket_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(socket_, 1), 0);
    getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this, pieces = std::move(pieces), pause] {
      const int client = accept(socket_, nullptr, nullptr);
      char head[4096];
      if (recv(client, head, sizeof(head), 0) <= 0) return;
      for (const std::string& piece : pieces) {
        if (send(client, piece.data(), piece.size(), MSG_NOSIGNAL) < 0) break;
        std::this_thread::sleep_for(pause);
      }
      close(client);
    });
  }
  ~SlowServer() {
    thread_.join();
    close(socket_);
  }
  std::string url() const { return fmt::format("http://127.0.0.1:{}", port_); }

 private:
  int socket_;
  int port_ = 0;
  std::thread thread_;
};

constexpr char kChunked[] =
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n";

// A chunk with its line end in one write, as most servers send it, must not wait for the next one.
TEST(HttpClient, AChunkIsGivenWhenItComes) {
  constexpr auto kPause = std::chrono::milliseconds(100);
  SlowServer server({kChunked, "5\r\nfirst\r\n", "6\r\nsecond\r\n", "5\r\nthird\r\n0\r\n\r\n"},
                    kPause);
  auto client = HttpClient::Create(server.url(), std::chrono::seconds(10)).value();
  std::vector<std::string> pieces;
  std::vector<Clock::time_point> times;
  HttpCall call;
  call.on_body = [&](int status, std::string_view piece) {
    EXPECT_EQ(status, 200);
    pieces.emplace_back(piece);
    times.push_back(Clock::now());
  };
  bool has_ended = false;
  call.on_end = [&](const StatusOr<int>& status) { has_ended = status.ok(); };
  client->Start(std::move(call));
  client->Run();
  EXPECT_TRUE(has_ended);
  ASSERT_EQ(pieces, (std::vector<std::string>{"first", "second", "third"}));
  for (size_t i = 1; i < times.size(); ++i) EXPECT_GT(times[i] - times[i - 1], kPause / 2);
}

TEST(HttpClient, ABodyWithoutALengthEndsWithTheConnection) {
  SlowServer server({"HTTP/1.0 200 OK\r\n\r\nall ", "of it"}, std::chrono::milliseconds(10));
  auto client = HttpClient::Create(server.url(), std::chrono::seconds(10)).value();
  const auto answer = client->Call({});
  ASSERT_TRUE(answer.ok()) << answer.status().message();
  EXPECT_EQ(answer->body, "all of it");
}

TEST(HttpClient, AnAnswerThatIsCutIsAnError) {
  SlowServer server({kChunked, "5\r\nfirst\r\n"}, std::chrono::milliseconds(10));
  auto client = HttpClient::Create(server.url(), std::chrono::seconds(10)).value();
  EXPECT_FALSE(client->Call({}).ok());
}

}  // namespace
}  // namespace quire
