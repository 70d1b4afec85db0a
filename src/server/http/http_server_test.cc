#include "server/http/http_server.h"

#include <gtest/gtest.h>

#include <thread>

#include "server/http/http_test_client.h"

namespace quire {
namespace {

using std::chrono::milliseconds;

TEST(HttpServer, AnswersAndKeepsTheConnection) {
  TestHandler handler;
  const auto server = StartServer(&handler);
  EXPECT_EQ(server->address(), "127.0.0.1:" + std::to_string(server->port()));
  TestClient client(server->port());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(client.Write(Get("/hello")));
    const TestAnswer answer = client.Read();
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.body, "hello");
    EXPECT_EQ(answer.fields.at("content-type"), "text/plain");
    EXPECT_EQ(answer.fields.count("connection"), 0u);
  }
  ASSERT_TRUE(client.Write(Post("/echo", "body of a request")));
  EXPECT_EQ(client.Read().body, "body of a request");
  EXPECT_EQ(handler.WaitAnswered(4).size(), 4u);
  EXPECT_EQ(server->num_connections(), 1u);
}

TEST(HttpServer, TheHandlersFieldsAreInEveryAnswer) {
  struct Handler : TestHandler {
    void AddFields(const HttpRequest& request, HttpFields* fields) override {
      fields->emplace_back("x-method", request.method);
    }
  } handler;
  const auto server = StartServer(&handler);
  TestClient client(server->port());
  ASSERT_TRUE(client.Write(Get("/hello")));
  EXPECT_EQ(client.Read().fields.at("x-method"), "GET");
  ASSERT_TRUE(client.Write(Post("/head", "answered before the body")));
  EXPECT_EQ(client.Read().fields.at("x-method"), "POST");
}

TEST(HttpServer, TakesTheClientsRequestIdOrMakesOne) {
  TestHandler handler;
  const auto server = StartServer(&handler);
  TestClient client(server->port());
  client.Write(Get("/hello", "X-Request-ID: my.id_1-2\r\n"));
  EXPECT_EQ(client.Read().fields.at("x-request-id"), "my.id_1-2");
  client.Write(Get("/hello", "X-Request-ID: has a blank\r\n"));
  const std::string made = client.Read().fields.at("x-request-id");
  EXPECT_EQ(made.size(), 36u);
  client.Write(Get("/hello", "X-Request-ID: " + std::string(129, 'a') + "\r\n"));
  EXPECT_NE(client.Read().fields.at("x-request-id"), made);
}

TEST(HttpServer, PipelinedRequestsAreAnsweredInOrder) {
  TestHandler handler;
  const auto server = StartServer(&handler);
  TestClient client(server->port());
  std::string all;
  for (int i = 0; i < 200; ++i) all += Post("/echo", "body " + std::to_string(i));
  ASSERT_TRUE(client.Write(all));
  for (int i = 0; i < 200; ++i) ASSERT_EQ(client.Read().body, "body " + std::to_string(i));
}

TEST(HttpServer, AHeadIsAnsweredBeforeItsBody) {
  TestHandler handler;
  const auto server = StartServer(&handler);
  TestClient client(server->port());
  client.Write("POST /denied HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n");
  const TestAnswer answer = client.Read();
  EXPECT_EQ(answer.status, 401);
  EXPECT_EQ(answer.fields.at("connection"), "close");
  EXPECT_TRUE(client.WaitClosed());

  TestClient other(server->port());
  other.Write(Get("/denied") + Get("/hello"));
  EXPECT_EQ(other.Read().status, 401);
  EXPECT_EQ(other.Read().status, 200) << "no body: the connection stays";
  EXPECT_EQ(handler.num_requests, 1);
  const auto answered = handler.WaitAnswered(3);
  ASSERT_EQ(answered.size(), 3u);
  EXPECT_EQ(answered[1].error_code, "denied");
  EXPECT_EQ(answered[2].error_code, "") << "of the request before";
}

TEST(HttpServer, HeadAndEmptyAnswersHaveNoBody) {
  TestHandler handler;
  handler.on_request = [](const HttpRequest& request, HttpReply reply) {
    if (request.Path() == "/none") return reply.Send({.status = 204, .body = "unseen"});
    reply.Start({.body = "first"});
    reply.Finish("last");
  };
  const auto server = StartServer(&handler);
  TestClient client(server->port());
  client.Write("HEAD /hello HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(client.Read(true).fields.at("content-length"), "5");
  client.Write("HEAD /pieces HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(client.Read(true).status, 200);
  client.Write(Get("/none"));
  EXPECT_EQ(client.Read().status, 204);
  client.Write(Get("/hello"));
  EXPECT_EQ(client.Read().body, "hello");
}

TEST(HttpServer, FieldValuesMakeNoLinesOfTheirOwn) {
  TestHandler handler;
  handler.on_request = [](const HttpRequest&, HttpReply reply) {
    reply.Send({.fields = {{"x-quire-ignored", "a\r\nset-cookie: b"}}, .tells_time = true});
  };
  const auto server = StartServer(&handler);
  TestClient client(server->port());
  client.Write(Get("/x"));
  const TestAnswer answer = client.Read();
  EXPECT_EQ(answer.fields.at("x-quire-ignored"), "a  set-cookie: b");
  EXPECT_EQ(answer.fields.count("set-cookie"), 0u);
  EXPECT_EQ(answer.fields.count("openai-processing-ms"), 1u);
}

TEST(HttpServer, RingReachesTheHandlerAndRingsJoin) {
  TestHandler handler;
  const auto server = StartServer(&handler);
  server->Ring();
  ASSERT_TRUE(WaitFor([&] { return handler.num_rings == 1; }));
  server->Post([] { std::this_thread::sleep_for(milliseconds(50)); });
  std::this_thread::sleep_for(milliseconds(5));
  for (int i = 0; i < 1000; ++i) server->Ring();
  ASSERT_TRUE(WaitFor([&] { return handler.num_rings >= 2; }));
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_LE(handler.num_rings, 3);
  EXPECT_TRUE(WaitFor([&] { return handler.num_ticks >= 2; }));
  EXPECT_GT(server->cpu_seconds(), 0);
}

TEST(HttpServer, StopLetsStreamsEndAndThenCutsThem) {
  TestHandler handler;
  std::vector<HttpReply> replies;
  std::atomic<int> num_shut{0}, num_started{0};
  handler.on_request = [&](const HttpRequest&, HttpReply reply) {
    reply.Watch(nullptr, [&](GoneReason reason) { num_shut += reason == GoneReason::kShutDown; });
    reply.Start({.body = "first"});
    replies.push_back(reply);
    ++num_started;
  };
  auto server = StartServer(&handler);
  TestClient ends(server->port()), stays(server->port()), idle(server->port());
  ends.Write(Get("/a"));
  ASSERT_TRUE(ends.ReadTo("first"));
  stays.Write(Get("/b"));
  ASSERT_TRUE(stays.ReadTo("first"));
  std::thread stopper([&] { server->Stop(milliseconds(300)); });
  EXPECT_TRUE(idle.WaitClosed(milliseconds(200)));
  EXPECT_FALSE(TestClient(server->port()).is_connected());
  server->Post([&] { replies[0].Finish("last"); });
  EXPECT_EQ(ends.Read().body, "firstlast");
  stopper.join();
  EXPECT_FALSE(stays.Read().is_well_formed);
  EXPECT_EQ(num_shut, 1);
  const auto answered = handler.WaitAnswered(2);
  ASSERT_EQ(answered.size(), 2u);
  EXPECT_EQ(answered[0].status, 200);
  EXPECT_EQ(answered[1].status, 499);
}

TEST(HttpServer, AnIdleServerStopsAtOnce) {
  TestHandler handler;
  const auto server = StartServer(&handler);
  const TestClient idle(server->port());
  const auto begin = std::chrono::steady_clock::now();
  server->Stop(milliseconds(10'000));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(1'000));
}

TEST(HttpServer, RepliesOutliveTheServer) {
  TestHandler handler;
  std::optional<HttpReply> kept;
  handler.on_request = [&](const HttpRequest&, HttpReply reply) { kept = std::move(reply); };
  auto server = StartServer(&handler);
  TestClient client(server->port());
  client.Write(Get("/a"));
  ASSERT_TRUE(WaitFor([&] { return handler.num_requests == 1; }));
  server.reset();
  kept->Send({});
  kept->Write("x");
  kept->Finish();
  EXPECT_TRUE(kept->is_gone());
  EXPECT_EQ(kept->unsent_bytes(), 0u);
}

TEST(HttpServer, AnAddressThatIsTakenIsToldWithWhatToChange) {
  TestHandler handler;
  const auto server = StartServer(&handler);
  HttpOptions options;
  options.port = server->port();
  const auto second = HttpServer::Create(options, &handler);
  ASSERT_EQ(second.status().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(second.status().message().find("--port"), std::string::npos);
  options.host = "no such host";
  EXPECT_EQ(HttpServer::Create(options, &handler).status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace quire
