// HttpServer's answers in pieces: framing, back pressure, and who notices that a client has gone.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <thread>

#include "server/http/http_server.h"
#include "server/http/http_test_client.h"

namespace quire {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// Keeps the reply of each request and what became of it.
class Streams {
 public:
  explicit Streams(TestHandler* handler) {
    handler->on_request = [this](const HttpRequest& request, HttpReply reply) {
      reply.Watch([this] { ++num_sent; },
                  [this](GoneReason why) {
                    reason = why;
                    gone_at = Clock::now();
                    ++num_gone;
                  });
      if (request.Path() != "/plain") reply.Start({.content_type = "text/event-stream"});
      current = std::move(reply);
      ++num_started;
    };
  }
  // On the HTTP thread; waits for it.
  void Do(HttpServer* server, const std::function<void(HttpReply&)>& work) {
    std::atomic<bool> is_done{false};
    server->Post([&] {
      work(*current);
      is_done = true;
    });
    ASSERT_TRUE(WaitFor([&] { return is_done.load(); }));
  }
  bool WaitStarted(int num) {
    return WaitFor([&] { return num_started == num; });
  }
  bool WaitGone() {
    return WaitFor([&] { return num_gone > 0; });
  }

  std::optional<HttpReply> current;
  std::atomic<int> num_started{0}, num_sent{0}, num_gone{0};
  GoneReason reason{};
  Clock::time_point gone_at;
};

TEST(HttpStreams, EachPieceIsAChunkAndTheLastHasTheEndMark) {
  TestHandler handler;
  Streams streams(&handler);
  const auto server = StartServer(&handler);
  TestClient client(server->port());
  client.Write(Get("/stream"));
  ASSERT_TRUE(streams.WaitStarted(1));
  ASSERT_TRUE(client.ReadTo("\r\n\r\n"));
  const size_t head_bytes = client.unread().size();
  EXPECT_NE(client.unread().find("transfer-encoding: chunked"), std::string::npos);
  streams.Do(server.get(), [](HttpReply& reply) { reply.Write("data: one\n\n"); });
  ASSERT_TRUE(client.Fill());
  EXPECT_EQ(client.unread().substr(head_bytes), "b\r\ndata: one\n\n\r\n");
  streams.Do(server.get(), [](HttpReply& reply) {
    reply.Write("");  // would be the end mark
    reply.Finish("data: [DONE]\n\n");
  });
  ASSERT_TRUE(client.Fill());
  EXPECT_EQ(client.unread().substr(head_bytes + 16), "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")
      << "one write";
  const TestAnswer answer = client.Read();
  EXPECT_TRUE(answer.is_well_formed);
  EXPECT_EQ(answer.num_chunks, 2);
  client.Write(Get("/hello"));
  EXPECT_EQ(client.Read().body, "hello");
}

TEST(HttpStreams, Http10GetsARawBodyAndAClose) {
  TestHandler handler;
  Streams streams(&handler);
  const auto server = StartServer(&handler);
  TestClient client(server->port());
  client.Write("GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  ASSERT_TRUE(streams.WaitStarted(1));
  streams.Do(server.get(), [](HttpReply& reply) {
    reply.Write("one ");
    reply.Finish("two");
  });
  const TestAnswer answer = client.Read();
  EXPECT_EQ(answer.body, "one two");
  EXPECT_EQ(answer.fields.count("transfer-encoding"), 0u);
  EXPECT_EQ(answer.fields.at("connection"), "close");
  // A whole answer may keep the connection, if the client asks.
  TestClient whole(server->port());
  whole.Write("GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_EQ(whole.Read().fields.at("connection"), "keep-alive");
  whole.Write("GET /hello HTTP/1.0\r\n\r\n");
  EXPECT_EQ(whole.Read().fields.at("connection"), "close");
  EXPECT_TRUE(whole.WaitClosed());
}

TEST(HttpStreams, ClientsThatLeaveAreNoticedAtOnce) {
  TestHandler handler;
  Streams streams(&handler);
  const auto server = StartServer(&handler);
  int num = 0;
  auto soonest = Clock::duration::max();  // the others may have waited for a processor
  for (const char* path : {"/plain", "/stream"}) {
    for (int how = 0; how < 3; ++how) {
      TestClient client(server->port());
      client.Write(Get(path));
      ASSERT_TRUE(streams.WaitStarted(++num));
      EXPECT_EQ(streams.num_gone, 0);
      const auto left = Clock::now();
      if (how == 0) client.ShutWrite();
      if (how == 1) client.Reset();
      if (how == 2) client.Close();
      ASSERT_TRUE(streams.WaitGone()) << path << how;
      soonest = std::min(soonest, streams.gone_at - left);
      // A close with unread bytes is a reset, too.
      if (how < 2) {
        EXPECT_EQ(streams.reason, how == 0 ? GoneReason::kClosed : GoneReason::kReset);
      }
      EXPECT_TRUE(streams.current->is_gone());
      streams.Do(server.get(), [](HttpReply& reply) {
        reply.Write("to nobody");
        reply.Finish();
      });
      EXPECT_EQ(streams.num_gone, 1);
      streams.num_gone = 0;
    }
  }
  EXPECT_LT(soonest, milliseconds(50));
  for (const auto& answered : handler.WaitAnswered(6)) EXPECT_EQ(answered.status, 499);
  EXPECT_TRUE(WaitFor([&] { return server->num_connections() == 0; }));
}

// The synchronous openai client closes after [DONE] without reading the end of the body.
TEST(HttpStreams, AClientThatLeavesAfterTheEndIsNotGone) {
  TestHandler handler;
  Streams streams(&handler);
  const auto server = StartServer(&handler);
  for (int i = 1; i <= 20; ++i) {
    TestClient client(server->port());
    client.Write(Get("/stream"));
    ASSERT_TRUE(streams.WaitStarted(i));
    streams.Do(server.get(), [](HttpReply& reply) { reply.Finish("data: [DONE]\n\n"); });
    ASSERT_TRUE(client.ReadTo("[DONE]"));
    client.Close();
  }
  for (const auto& answered : handler.WaitAnswered(20)) EXPECT_EQ(answered.status, 200);
  EXPECT_EQ(streams.num_gone, 0);
}

TEST(HttpStreams, ARequestSentAheadWaitsForItsTurn) {
  TestHandler handler;
  Streams streams(&handler);
  const auto server = StartServer(&handler);
  TestClient client(server->port());
  client.Write(Get("/stream") + Get("/hello"));
  ASSERT_TRUE(streams.WaitStarted(1));
  EXPECT_EQ(handler.num_requests, 1);
  streams.Do(server.get(), [](HttpReply& reply) { reply.Finish("end"); });
  EXPECT_EQ(client.Read().body, "end");
  EXPECT_EQ(client.Read().body, "hello");
}

TEST(HttpStreams, AtMost64KiBAreTakenAheadAndTheEndIsStillNoticed) {
  TestHandler handler;
  Streams streams(&handler);
  const auto server = StartServer(&handler);
  TestClient client(server->port());
  const int small = 4096;
  setsockopt(client.descriptor(), SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
  client.Write(Get("/stream"));
  ASSERT_TRUE(streams.WaitStarted(1));
  // The kernels' buffers take some megabytes more; then this side would block.
  const std::string ahead(64 << 10, 'x');
  size_t num = 0;
  for (ssize_t sent = 1; sent > 0; num += sent > 0 ? sent : 0) {
    std::this_thread::sleep_for(milliseconds(2));
    sent = send(client.descriptor(), ahead.data(), ahead.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    ASSERT_LT(num, size_t{64} << 20);
  }
  EXPECT_EQ(streams.num_gone, 0);
  client.Reset();
  ASSERT_TRUE(streams.WaitGone());
}

TEST(HttpStreams, AStalledReaderIsCutAndHoldsNoMoreThan64KiB) {
  TestHandler handler;
  Streams streams(&handler);
  const auto server = StartServer(&handler, {.write_stall = milliseconds(150)});
  TestClient client(server->port(), "127.0.0.1", 4096);
  client.Write(Get("/stream"));
  ASSERT_TRUE(streams.WaitStarted(1));
  // A writer that waits for the socket: the bytes held never pass one piece.
  const std::string piece(1'000, 'x');
  size_t num_written = 0, most = 0;
  for (bool takes = true; takes;) {
    streams.Do(server.get(), [&](HttpReply& reply) {
      takes = reply.unsent_bytes() == 0 && !reply.is_gone();
      if (!takes) return;
      reply.Write(piece);
      num_written += piece.size();
      most = std::max(most, reply.unsent_bytes());
    });
    ASSERT_LT(num_written, size_t{1} << 20) << "the kernel's buffers are bounded";
  }
  EXPECT_GT(most, 0u);
  EXPECT_LE(most, piece.size() + 16);
  const auto begin = Clock::now();
  ASSERT_TRUE(streams.WaitGone());
  EXPECT_EQ(streams.reason, GoneReason::kStalled);
  EXPECT_LT(streams.gone_at - begin, milliseconds(400));
}

TEST(HttpStreams, AWriterThatDoesNotWaitIsCutAtTheLimit) {
  TestHandler handler;
  Streams streams(&handler);
  const auto server = StartServer(&handler);
  TestClient client(server->port(), "127.0.0.1", 4096);
  client.Write(Get("/stream"));
  ASSERT_TRUE(streams.WaitStarted(1));
  size_t most = 0;
  streams.Do(server.get(), [&](HttpReply& reply) {
    for (int i = 0; i < 10'000 && !reply.is_gone(); ++i) {
      reply.Write(std::string(1'000, 'x'));
      most = std::max(most, reply.unsent_bytes());
    }
    EXPECT_TRUE(reply.is_gone());
    EXPECT_EQ(streams.num_gone, 0) << "told later, not inside the call";
  });
  ASSERT_TRUE(streams.WaitGone());
  EXPECT_EQ(streams.reason, GoneReason::kStalled);
  EXPECT_LE(most, size_t{64} << 10);
}

TEST(HttpStreams, ASlowReaderGetsAllAndTheWriterIsToldWhenToGoOn) {
  TestHandler handler;
  Streams streams(&handler);
  const auto server = StartServer(&handler);
  TestClient client(server->port(), "127.0.0.1", 4096);
  client.Write(Get("/stream"));
  ASSERT_TRUE(streams.WaitStarted(1));
  streams.Do(server.get(), [&](HttpReply& reply) {
    for (int i = 0; i < 2'000 && reply.unsent_bytes() == 0; ++i)
      reply.Write(std::string(1'000, 'x'));
    EXPECT_GT(reply.unsent_bytes(), 0u);
    reply.Watch([&] { streams.current->Finish("end"); }, nullptr);
  });
  const TestAnswer answer = client.Read();
  EXPECT_TRUE(answer.is_well_formed);
  EXPECT_EQ(answer.body.substr(answer.body.size() - 4), "xend");
  // A whole answer is sent however large it is.
  client.Write(Post("/echo", std::string(3 << 20, 'y')));
  EXPECT_EQ(client.Read().body.size(), size_t{3} << 20);
}

}  // namespace
}  // namespace quire
