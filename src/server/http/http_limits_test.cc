// HttpServer's limits and time-outs: what hostile, slow and absent clients get.
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "server/http/http_server.h"
#include "server/http/http_test_client.h"

namespace quire {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

TEST(HttpLimits, AClientThatSendsNothingIsClosedWithoutAWord) {
  TestHandler handler;
  const auto server = StartServer(&handler, {.head_time = milliseconds(50)});
  TestClient client(server->port());
  EXPECT_TRUE(client.WaitClosed(milliseconds(1'000)));
  EXPECT_EQ(client.unread(), "");
}

TEST(HttpLimits, AHeadThatDoesNotComeInTimeIs408) {
  TestHandler handler;
  const auto server = StartServer(&handler, {.head_time = milliseconds(50)});
  TestClient client(server->port());
  client.Write("GET /hello HT");
  const TestAnswer answer = client.Read();
  EXPECT_EQ(answer.status, 408);
  EXPECT_EQ(answer.body.rfind("request_timeout", 0), 0u);
  EXPECT_TRUE(client.WaitClosed());
  // On a connection that has served, the time runs from the first byte.
  TestClient again(server->port());
  again.Write(Get("/hello"));
  again.Read();
  std::this_thread::sleep_for(milliseconds(80));
  again.Write(Get("/hello"));
  EXPECT_EQ(again.Read().status, 200);
}

TEST(HttpLimits, AnIdleConnectionCloses) {
  TestHandler handler;
  const auto server = StartServer(&handler, {.idle = milliseconds(50)});
  TestClient client(server->port());
  client.Write(Get("/hello"));
  EXPECT_EQ(client.Read().status, 200);
  EXPECT_TRUE(client.WaitClosed(milliseconds(1'000)));
}

TEST(HttpLimits, ABodyMayBeLateButNotSlow) {
  TestHandler handler;
  const auto server =
      StartServer(&handler, {.body_time = milliseconds(100), .body_bytes_per_second = 1'000});
  TestClient slow(server->port());
  slow.Write("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nfirst");
  EXPECT_EQ(slow.Read().status, 408);
  // 1,000 bytes in a quarter of a second: over body_time, and fast enough.
  TestClient steady(server->port());
  steady.Write("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n");
  for (int i = 0; i < 5; ++i) {
    steady.Write(std::string(200, 'x'));
    std::this_thread::sleep_for(milliseconds(50));
  }
  EXPECT_EQ(steady.Read().body.size(), 1'000u);
}

// SEC-07.
TEST(HttpLimits, AHugeBodyIsRefusedBeforeItIsRead) {
  TestHandler handler;
  const auto server = StartServer(&handler);
  {
    TestClient warm(server->port());
    warm.Write(Post("/echo", std::string(1 << 20, 'x')));
    warm.Read();
  }
  const size_t before = ResidentBytes();
  TestClient with_length(server->port());
  with_length.Write("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2147483648\r\n\r\n");
  const TestAnswer refused = with_length.Read();
  EXPECT_EQ(refused.status, 413);
  EXPECT_EQ(refused.fields.at("connection"), "close");

  TestClient in_chunk(server->port());
  in_chunk.Write(
      "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n80000000\r\n\n\n\n");
  EXPECT_EQ(in_chunk.Read().status, 413);
  // A client that does not listen and goes on sending is read for a moment, then cut.
  const std::string lines(1 << 20, '\n');
  size_t num_written = 0;
  while (num_written < (size_t{2} << 30) && with_length.Write(lines)) num_written += lines.size();
  EXPECT_LT(num_written, size_t{2} << 30);
  EXPECT_LT(ResidentBytes(), before + (3 << 20));
  EXPECT_EQ(handler.num_requests, 1);
}

TEST(HttpLimits, SmallChunksAddUpToTheLimit) {
  TestHandler handler;
  const auto server = StartServer(&handler, {.body_bytes = 1'000});
  TestClient client(server->port());
  client.Write("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (int i = 0; i < 101; ++i) client.Write("a\r\n0123456789\r\n");
  EXPECT_EQ(client.Read().status, 413);
}

TEST(HttpLimits, BodiesOfAllConnectionsTogetherAreBounded) {
  TestHandler handler;
  std::optional<HttpReply> kept;
  handler.on_request = [&](const HttpRequest&, HttpReply reply) { kept = std::move(reply); };
  const auto server = StartServer(&handler, {.body_bytes = 1'000, .all_body_bytes = 1'500});
  TestClient first(server->port()), second(server->port()), third(server->port());
  first.Write(Post("/wait", std::string(1'000, 'x')));
  ASSERT_TRUE(WaitFor([&] { return handler.num_requests == 1; }));
  second.Write(Post("/echo", std::string(600, 'x')));
  EXPECT_EQ(second.Read().status, 503) << "told by the length";
  third.Write("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n258\r\n" +
              std::string(600, 'x') + "\r\n");
  EXPECT_EQ(third.Read().status, 503) << "told by what came";
  // Counted until the answer starts.
  server->Post([&] { kept->Send({}); });
  EXPECT_EQ(first.Read().status, 200);
  first.Write(Post("/echo", std::string(1'000, 'x')));
  EXPECT_EQ(first.Read().body.size(), 1'000u);
}

// API-15.
TEST(HttpLimits, ExpectContinueIsAnsweredAtOnce) {
  TestHandler handler;
  const auto server = StartServer(&handler);
  TestClient client(server->port());
  const auto begin = Clock::now();
  client.Write(
      "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2097152\r\n\r\n");
  EXPECT_EQ(client.Read().status, 100);
  EXPECT_LT(Clock::now() - begin, milliseconds(100));
  client.Write(std::string(2 << 20, 'x'));
  EXPECT_EQ(client.Read().body.size(), size_t{2} << 20);
  client.Write(
      "POST /denied HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_EQ(client.Read().status, 401) << "in place of 100";
}

TEST(HttpLimits, TooManyConnectionsAreTold503AndClosed) {
  TestHandler handler;
  const auto server = StartServer(&handler, {.connections = 3});
  std::vector<TestClient> clients;
  for (int i = 0; i < 3; ++i) clients.emplace_back(server->port());
  for (TestClient& client : clients) {
    client.Write(Get("/hello"));
    EXPECT_EQ(client.Read().status, 200);
  }
  TestClient more(server->port());
  more.Write(Get("/hello"));
  const TestAnswer refused = more.Read();
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.body.rfind("too_many_connections", 0), 0u);
  EXPECT_TRUE(more.WaitClosed());
  clients.pop_back();
  ASSERT_TRUE(WaitFor([&] { return server->num_connections() == 2; }));
  TestClient next(server->port());
  next.Write(Get("/hello"));
  EXPECT_EQ(next.Read().status, 200);
}

TEST(HttpLimits, OneAddressCannotTakeAllConnections) {
  TestHandler handler;
  const auto server = StartServer(&handler, {.connections_per_address = 2});
  TestClient first(server->port()), second(server->port(), "127.0.0.1", 0, "127.0.0.2");
  TestClient third(server->port()), fourth(server->port());
  fourth.Write(Get("/hello"));
  EXPECT_EQ(fourth.Read().status, 503);
  second.Write(Get("/hello"));
  EXPECT_EQ(second.Read().status, 200);
}

// The fourth part of the times in which `client` is answered, for `most`; `between` runs before
// each.
Clock::duration AnswerTime(TestClient* client, milliseconds most,
                           const std::function<void(size_t)>& between) {
  std::vector<Clock::duration> times;
  const auto begin = Clock::now();
  for (size_t i = 0; times.empty() || Clock::now() - begin < most; ++i) {
    between(i);
    const auto asked = Clock::now();
    client->Write(Get("/hello"));
    EXPECT_EQ(client->Read().status, 200);
    times.push_back(Clock::now() - asked);
    std::this_thread::sleep_for(milliseconds(20));
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 4];
}

// SEC-09.
TEST(HttpLimits, SlowClientsDoNotHoldUpAGoodOne) {
  TestHandler handler;
  const auto server = StartServer(&handler, {.head_time = milliseconds(400)});
  TestClient good(server->port());
  const auto alone = AnswerTime(&good, milliseconds(300), [](size_t) {});
  std::vector<TestClient> slow;
  for (int i = 0; i < 200; ++i) slow.emplace_back(server->port());
  const auto among = AnswerTime(&good, milliseconds(600), [&](size_t i) {
    for (TestClient& client : slow) client.Write(Get("/hello").substr(i % 8, 1));
  });
  // 200 reads are under way in front of the good one's; a processor may be away for some time.
  EXPECT_LT(among, 3 * alone + milliseconds(50));
  for (TestClient& client : slow) EXPECT_TRUE(client.WaitClosed());
  EXPECT_EQ(slow.front().unread().substr(0, 12), "HTTP/1.1 408");
  EXPECT_TRUE(WaitFor([&] { return server->num_connections() == 1; }));
}

}  // namespace
}  // namespace quire
