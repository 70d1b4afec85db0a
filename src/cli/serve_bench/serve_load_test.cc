#include "cli/serve_bench/serve_load.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <mutex>
#include <thread>

namespace quire {
namespace {

// Answers the n-th request with the n-th script; one that does not end in a whole answer, or says
// "Connection: close", closes; one that begins with "!" (which is not sent) too, unannounced. A
// thread for each connection.
class ScriptedServer {
 public:
  explicit ScriptedServer(std::vector<std::string> scripts) : scripts_(std::move(scripts)) {
    listener_ = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(listener_, generic, size), 0);
    EXPECT_EQ(listen(listener_, 16), 0);
    EXPECT_EQ(getsockname(listener_, generic, &size), 0);
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] {
      for (int fd; (fd = accept(listener_, nullptr, nullptr)) >= 0;) {
        ++num_connections;
        serving_.emplace_back([this, fd] { Serve(fd); });
      }
    });
  }
  ~ScriptedServer() {
    shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    for (std::thread& thread : serving_) thread.join();
    close(listener_);
  }

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  std::vector<std::string> requests;  // read them after the client is gone
  int num_connections = 0;

 private:
  void Serve(int fd) {
    std::string input;
    char bytes[4096];
    bool is_open = true;
    while (is_open) {
      const ssize_t count = read(fd, bytes, sizeof bytes);
      if (count <= 0) break;
      input.append(bytes, static_cast<size_t>(count));
      const size_t head = input.find("\r\n\r\n");
      if (head == std::string::npos) continue;
      const size_t field = input.find("Content-Length: ");
      const size_t length =
          field < head ? static_cast<size_t>(std::atoi(input.c_str() + field + 16)) : 0;
      if (input.size() < head + 4 + length) continue;
      std::string script;
      {
        const std::lock_guard lock(mutex_);
        script = scripts_.at(requests.size());
        requests.push_back(std::move(input));
      }
      input.clear();
      const bool is_cut = script.starts_with('!');
      if (is_cut) script.erase(0, 1);
      is_open =
          !is_cut && script.ends_with("\r\n\r\n") && script.find("close") == std::string::npos;
      EXPECT_EQ(write(fd, script.data(), script.size()), static_cast<ssize_t>(script.size()));
    }
    close(fd);
  }

  std::vector<std::string> scripts_;
  std::mutex mutex_;
  int listener_ = -1;
  uint16_t port_ = 0;
  std::thread acceptor_;
  std::vector<std::thread> serving_;
};

std::string Chunk(const std::string& bytes) {
  char size[16];
  std::snprintf(size, sizeof size, "%zx\r\n", bytes.size());
  return size + bytes + "\r\n";
}

const std::string kHead =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
const std::string kToken = Chunk("data: {\"choices\":[{\"text\":\"a\"}]}\n\n");
const std::string kUsage = Chunk(
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3,"
    "\"prompt_tokens_details\":{\"cached_tokens\":5}}}\n\n");
const std::string kDone = Chunk("data: [DONE]\n\n") + "0\r\n\r\n";
const std::string kRefusal =
    "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 37\r\nConnection: close\r\n\r\n"
    "{\"error\":{\"message\":\"queue is full\"}}";

std::vector<CallResult> Send(const std::string& url, size_t count, ServeLoadOptions options = {}) {
  auto client = HttpClient::Create(url, std::chrono::seconds(20));
  EXPECT_TRUE(client.ok());
  const std::vector<BenchPrompt> prompts(count, {.prompt = {1, 2}, .output_len = 3});
  options.max_concurrency = 1;
  ServeLoad load(**client, options, prompts);
  size_t num_ended = 0;
  load.Run([&](size_t ended, uint64_t) { num_ended = ended; });
  EXPECT_EQ(num_ended, count);
  return {load.results().begin(), load.results().end()};
}

TEST(ServeLoad, CountsChunksAndReadsUsage) {
  ScriptedServer server({kHead + kToken + kToken + kUsage + kDone});
  const auto results = Send(server.url(), 1);
  EXPECT_EQ(results[0].error, "");
  EXPECT_EQ(results[0].chunks.size(), 2u);
  EXPECT_EQ(results[0].prompt_tokens, 7u);
  EXPECT_EQ(results[0].output_tokens, 3u);
  EXPECT_EQ(results[0].cached_tokens, 5u);
}

TEST(ServeLoad, SendsWhatWasAsked) {
  ScriptedServer server({kHead + kToken + kDone, kHead + kToken + kDone});
  EXPECT_EQ(Send(server.url() + "/base/", 1,
                 {.model = "m",
                  .ignore_eos = true,
                  .extra_body = {{"temperature", 0}},
                  .headers = {{"Authorization", "Bearer k"}}})[0]
                .output_tokens,
            1u);  // no usage: the chunks are counted
  Send(server.url(), 1, {.path = "/v1/chat/completions", .is_chat = true, .model = "m"});
  const auto body_of = [&](size_t i) {
    return nlohmann::json::parse(server.requests[i].substr(server.requests[i].find("\r\n\r\n")));
  };
  EXPECT_EQ(server.requests[0].find("POST /base/v1/completions HTTP/1.1\r\n"), 0u);
  EXPECT_NE(server.requests[0].find("Authorization: Bearer k\r\n"), std::string::npos);
  EXPECT_EQ(body_of(0), nlohmann::json::parse(R"({"model": "m", "prompt": [1, 2], "max_tokens": 3,
      "stream": true, "stream_options": {"include_usage": true}, "ignore_eos": true,
      "temperature": 0})"));
  EXPECT_EQ(server.requests[1].find("POST /v1/chat/completions HTTP/1.1\r\n"), 0u);
  EXPECT_EQ(body_of(1)["messages"][0]["content"], nlohmann::json({1, 2}));
  EXPECT_EQ(body_of(1)["max_completion_tokens"], 3);
}

TEST(ServeLoad, OneConnectionServesCallAfterCall) {
  const std::string whole = kHead + kToken + kDone;
  ScriptedServer server({whole, whole, whole});
  for (const CallResult& result : Send(server.url(), 3)) EXPECT_EQ(result.error, "");
  EXPECT_EQ(server.num_connections, 1);
}

TEST(ServeLoad, SaysWhyACallFailed) {
  const std::string error = Chunk("data: {\"error\":{\"message\":\"draining\"}}\n\n");
  ScriptedServer server({kRefusal, kHead + kToken, kHead + kToken + error + kDone,
                         kHead + kToken + "0\r\n\r\n", kHead + kDone});
  const auto results = Send(server.url(), 5);
  EXPECT_EQ(results[0].error, "status 503: queue is full");
  EXPECT_NE(results[1].error.find("in the middle of the answer"), std::string::npos)
      << results[1].error;
  EXPECT_EQ(results[2].error, "draining");
  EXPECT_EQ(results[3].error, "the stream ended without [DONE]");
  EXPECT_EQ(results[4].error, "the stream held no chunk with a choice");
}

TEST(ServeLoad, ACallOnAKeptConnectionThatTheServerClosedIsMadeAnew) {
  // The first answer says that the connection stays, and then it is closed.
  const std::string whole = kHead + kToken + kDone;
  ScriptedServer server({"!" + whole, whole});
  const auto results = Send(server.url(), 2);
  for (const CallResult& result : results) EXPECT_EQ(result.error, "");
  EXPECT_EQ(server.num_connections, 2);
}

TEST(HttpClient, RefusesAddressesThatItCannotCall) {
  for (const char* url : {"", "127.0.0.1:8000", "https://127.0.0.1", "http://", "http://:80",
                          "http://127.0.0.1:x", "http://127.0.0.1:99999"})
    EXPECT_EQ(HttpClient::Create(url, std::chrono::seconds(1)).status().code(),
              StatusCode::kInvalidArgument)
        << url;
  EXPECT_TRUE(HttpClient::Create("http://[::1]:80/v1", std::chrono::seconds(1)).ok());
}

TEST(HttpClient, ACallToNobodyFails) {
  auto client = HttpClient::Create("http://127.0.0.1:1", std::chrono::seconds(5));
  ASSERT_TRUE(client.ok());
  EXPECT_NE((*client)->Call({}).status().message().find("127.0.0.1:1"), std::string::npos);
}

}  // namespace
}  // namespace quire
