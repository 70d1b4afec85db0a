// HttpServer's addresses, and what many connections leave behind.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <thread>

#include "server/http/http_server.h"
#include "server/http/http_test_client.h"

namespace quire {
namespace {

using std::chrono::milliseconds;

// A folder of this test's own, removed with it.
class HttpUnixSocket : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "quire_http_XXXXXX";
    folder_ = std::filesystem::temp_directory_path() / name;
    std::string text = folder_.string();
    ASSERT_NE(mkdtemp(text.data()), nullptr);
    folder_ = text;
    options_.unix_path = folder_ / "quire.sock";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_;
  HttpOptions options_;
  TestHandler handler_;
};

TEST_F(HttpUnixSocket, IsForItsOwnerOnlyAndLeavesNoFile) {
  const mode_t before = umask(0);
  auto server = HttpServer::Create(options_, &handler_);
  umask(before);
  ASSERT_TRUE(server.ok()) << server.status().message();
  EXPECT_EQ((*server)->address(), options_.unix_path);
  struct stat file {};
  ASSERT_EQ(lstat(options_.unix_path.c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0600u);
  (*server)->Run();
  TestClient client(options_.unix_path);
  client.Write(Get("/hello"));
  EXPECT_EQ(client.Read().body, "hello");
  EXPECT_EQ(handler_.last_request().peer_address, "unix");
  server->reset();
  EXPECT_FALSE(std::filesystem::exists(options_.unix_path));
}

TEST_F(HttpUnixSocket, OnlyAStaleSocketIsTakenOver) {
  // One that a dead process left.
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::snprintf(name.sun_path, sizeof(name.sun_path), "%s", options_.unix_path.c_str());
  const int dead = socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(bind(dead, reinterpret_cast<sockaddr*>(&name), sizeof(name)), 0);
  close(dead);
  const auto server = HttpServer::Create(options_, &handler_);
  ASSERT_TRUE(server.ok()) << server.status().message();
  // One that lives.
  const auto second = HttpServer::Create(options_, &handler_);
  EXPECT_EQ(second.status().code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(std::filesystem::exists(options_.unix_path));
  // A file that is no socket.
  options_.unix_path = folder_ / "notes.txt";
  std::ofstream(options_.unix_path) << "not to be lost";
  EXPECT_FALSE(HttpServer::Create(options_, &handler_).ok());
  EXPECT_EQ(std::filesystem::file_size(options_.unix_path), 14u);
  options_.unix_path = std::string(200, 'x');
  EXPECT_FALSE(HttpServer::Create(options_, &handler_).ok());
}

TEST(HttpAddress, Ipv6IsSpoken) {
  TestHandler handler;
  HttpOptions options;
  options.host = "::1";
  options.port = 0;
  const auto server = HttpServer::Create(options, &handler);
  if (!server.ok()) GTEST_SKIP() << "no IPv6 here: " << server.status().message();
  (*server)->Run();
  EXPECT_EQ((*server)->address(), "[::1]:" + std::to_string((*server)->port()));
  TestClient client((*server)->port(), "::1");
  client.Write(Get("/hello"));
  EXPECT_EQ(client.Read().body, "hello");
  EXPECT_EQ(handler.last_request().peer_address, "::1");
}

TEST(HttpResources, TenThousandConnectionsLeaveNothing) {
  TestHandler handler;
  const auto server = StartServer(&handler, {.connections_per_address = 1024});
  const std::string post = Post("/echo", std::string(2'000, 'x'));
  // A hundred at a time. Whole, refused, or cut at some byte; the client closes without a word.
  const auto serve = [&](int num) {
    for (int first = 0; first < num; first += 100) {
      std::vector<TestClient> clients;
      for (int i = first; i < first + 100; ++i) {
        TestClient& client = clients.emplace_back(server->port());
        if (i % 4 == 0) {
          client.Write(post);
        } else if (i % 4 == 1) {
          client.Write("GET /.. HTTP/1.1\r\nHost: a\r\n\r\n");
        } else {
          client.Write(std::string_view(post).substr(0, i % post.size()));
        }
      }
      for (size_t i = 0; i < clients.size(); i += 4) {
        ASSERT_EQ(clients[i].Read().status, 200);
        ASSERT_EQ(clients[i + 1].Read().status, 400);
      }
    }
    ASSERT_TRUE(WaitFor([&] { return server->num_connections() == 0; }));
  };
  serve(2'000);
  const size_t descriptors = NumDescriptors(), bytes = ResidentBytes();
  serve(8'000);
  EXPECT_EQ(NumDescriptors(), descriptors);
#ifndef QUIRE_SANITIZED
  EXPECT_LT(ResidentBytes(), bytes + (1 << 20));
#else
  (void)bytes;
#endif
}

TEST(HttpResources, EachCutPointOfAHeadLeavesNothing) {
  TestHandler handler;
  const auto server = StartServer(&handler);
  const std::string head = Get("/hello", "X-Request-Id: a\r\nAccept: */*\r\n");
  const size_t before = NumDescriptors();
  for (size_t cut = 0; cut < head.size(); ++cut) {
    TestClient client(server->port());
    client.Write(std::string_view(head).substr(0, cut));
  }
  EXPECT_TRUE(WaitFor([&] { return server->num_connections() == 0; }));
  EXPECT_TRUE(WaitFor([&] { return NumDescriptors() == before; }));
  EXPECT_EQ(handler.num_requests, 0);
}

TEST(HttpResources, NoDescriptorLeftIsToldOnceAndClientsWait) {
  TestHandler handler;
  const auto server = StartServer(&handler);
  TestClient first(server->port());
  first.Write(Get("/hello"));
  first.Read();
  std::vector<int> waiting(8);
  for (int& descriptor : waiting) descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  rlimit low = before;
  low.rlim_cur = 1;  // those that are open stay
  setrlimit(RLIMIT_NOFILE, &low);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(server->port());
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  for (const int descriptor : waiting)
    EXPECT_EQ(connect(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_TRUE(WaitFor([&] { return handler.num_troubles == 1; }));
  const double cpu = server->cpu_seconds();
  std::this_thread::sleep_for(milliseconds(300));
  EXPECT_LT(server->cpu_seconds() - cpu, 0.1) << "it spins";
  first.Write(Get("/hello"));
  EXPECT_EQ(first.Read().status, 200);
  setrlimit(RLIMIT_NOFILE, &before);
  for (const int descriptor : waiting) {
    TestClient client = TestClient::Of(descriptor);
    client.Write(Get("/hello"));
    EXPECT_EQ(client.Read().status, 200);
  }
  EXPECT_EQ(handler.num_troubles, 1);
}

}  // namespace
}  // namespace quire
