// Mutated requests against a server: whatever comes, each answer is HTTP, and the connection ends.
//
// A run is 20,000. For more, each repeat with other faults:
//   http_test --gtest_filter='HttpMutation.*' --gtest_shuffle --gtest_random_seed=1
//             --gtest_repeat=50
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "server/http/http_mutator.h"
#include "server/http/http_server.h"
#include "server/http/http_test_client.h"
#include "server/http/request_reader.h"

namespace quire {
namespace {

using std::chrono::milliseconds;

constexpr uint64_t kSeed = 20'261'130;
constexpr int kNumRequests = 20'000;
constexpr int kAtOnce = 50;

// Takes whole answers off the front; false if one is not HTTP. An answer to HEAD has a length and
// no body: then what follows is the next answer or the end.
bool AreAnswers(std::string text) {
  while (!text.empty()) {
    if (text.rfind("HTTP/1.1 ", 0) != 0) return false;
    const size_t end = text.find("\r\n\r\n");
    if (end == std::string::npos) return false;
    const std::string head = text.substr(0, end + 2);
    text.erase(0, end + 4);
    const size_t length = head.find("\r\ncontent-length: ");
    if (length != std::string::npos) {
      const size_t num = std::stoul(head.substr(length + 18));
      if (text.empty() || text.rfind("HTTP/1.1 ", 0) == 0) continue;
      if (text.size() < num) return false;
      text.erase(0, num);
    } else if (head.find("\r\ntransfer-encoding: chunked") != std::string::npos) {
      if (text.empty() || text.rfind("HTTP/1.1 ", 0) == 0) continue;
      const size_t mark = text.find("0\r\n\r\n");
      if (mark == std::string::npos) return false;
      text.erase(0, mark + 5);
    } else if (head.find("connection: close") != std::string::npos) {
      return true;  // raw, to the end
    } else if (head.rfind("HTTP/1.1 100 ", 0) != 0) {
      return false;
    }
  }
  return true;
}

TEST(HttpMutation, EachAnswerIsHttpAndEachConnectionEnds) {
  TestHandler handler;
  handler.on_request = [](const HttpRequest& request, HttpReply reply) {
    if (request.Path() != "/pieces") return reply.Send({.status = 404, .body = "{}"});
    reply.Start({.body = "one"});
    reply.Write("two");
    reply.Finish("three");
  };
  std::string folder = (std::filesystem::temp_directory_path() / "quire_http_XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  HttpOptions options;
  options.unix_path = folder + "/socket";
  auto server = HttpServer::Create(options, &handler);
  ASSERT_TRUE(server.ok());
  (*server)->Run();
  const uint64_t seed = kSeed + testing::UnitTest::GetInstance()->random_seed();
  HttpMutator mutator(seed);
  for (int first = 0; first < kNumRequests; first += kAtOnce) {
    std::vector<TestClient> clients;
    std::vector<std::string> sent;
    for (int i = 0; i < kAtOnce; ++i) {
      std::string& bytes = sent.emplace_back(mutator.Requests());
      for (size_t num = mutator.Below(4); num > 0; --num) mutator.Mutate(&bytes);
      TestClient& client = clients.emplace_back(options.unix_path);
      ASSERT_TRUE(client.is_connected());
      client.Write(bytes);
      client.ShutWrite();
    }
    for (int i = 0; i < kAtOnce; ++i) {
      const auto words = [&] {
        return "seed " + std::to_string(seed) + " request " + std::to_string(first + i) + "\n" +
               sent[i] + "\n--\n" + clients[i].unread();
      };
      ASSERT_TRUE(clients[i].WaitClosed()) << words();
      ASSERT_TRUE(AreAnswers(clients[i].unread())) << words();
    }
  }
  EXPECT_GT(handler.num_requests, kNumRequests / 4);
  EXPECT_EQ(handler.num_troubles, 0);
  TestClient good(options.unix_path);
  good.Write(Get("/hello"));
  EXPECT_EQ(good.Read().body, "hello");
  server->reset();
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace quire
