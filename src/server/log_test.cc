#include "server/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

namespace quire {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

Log::Clock::time_point At(double seconds) {
  return Log::Clock::time_point(std::chrono::duration_cast<Log::Clock::duration>(
      std::chrono::duration<double>(1000 + seconds)));
}

// A log into a file of its own, and its lines.
class LogTest : public ::testing::Test {
 protected:
  Log& Make(LogOptions options) {
    log_ = std::make_unique<Log>(options, fileno(file_.get()));
    return *log_;
  }
  std::vector<std::string> Lines() {
    EXPECT_TRUE(log_->Flush(std::chrono::milliseconds(20'000)));
    std::rewind(file_.get());
    std::string text;
    for (int c = 0; (c = std::fgetc(file_.get())) != EOF;) text += static_cast<char>(c);
    EXPECT_TRUE(text.empty() || text.back() == '\n');
    std::vector<std::string> lines;
    for (size_t begin = 0, end = 0; begin < text.size(); begin = end + 1) {
      end = text.find('\n', begin);
      lines.push_back(text.substr(begin, end - begin));
    }
    return lines;
  }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, Close> file_{std::tmpfile()};
  std::unique_ptr<Log> log_;
};

RequestRecord Answered() {
  return {.id = "req-1",
          .tenant = "shop",
          .key_name = "ann",
          .method = "POST",
          .endpoint = "/v1/chat/completions",
          .status = 200,
          .seconds = 0.5,
          .num_prompt_tokens = 120,
          .num_cached_tokens = 64,
          .num_generated_tokens = 20,
          .queue_seconds = 0.001,
          .ttft_seconds = 0.08,
          .tpot_seconds = 0.021,
          .finish = "stop",
          .match_stop = "diverged"};
}

TEST_F(LogTest, ARequestIsOneLine) {
  Make({}).Request(Answered(), At(0));
  const auto lines = Lines();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(
      lines[0],
      MatchesRegex(
          "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z info: request "
          "id=req-1 "
          "tenant=shop key=ann method=POST endpoint=/v1/chat/completions status=200 seconds=0.5 "
          "prompt=120 cached=64 generated=20 queue=0.001 ttft=0.08 tpot=0.021 finish=stop "
          "match_stop=diverged"));
}

TEST_F(LogTest, JsonHasTheSameAsOneObjectALine) {
  Log& log = Make({.format = LogFormat::kJson});
  log.Request(Answered(), At(0));
  log.Message(LogLevel::kWarning, "two\nlines \xff");
  const auto lines = Lines();
  ASSERT_EQ(lines.size(), 2u);
  const auto request = nlohmann::json::parse(lines[0]);
  EXPECT_EQ(request["event"], "request");
  EXPECT_EQ(request["tenant"], "shop");
  EXPECT_EQ(request["prompt"], 120);
  EXPECT_EQ(request["ttft"], 0.08);
  const auto message = nlohmann::json::parse(lines[1]);
  EXPECT_EQ(message["level"], "warning");
  EXPECT_EQ(message["message"], "two\nlines \xef\xbf\xbd");
}

// A client writes no line of its own and no field that isn't its.
TEST_F(LogTest, WordsOfClientsAreEscaped) {
  Log& log = Make({});
  RequestRecord record{.method = "GET", .endpoint = "/a\n2026 info: request id=x", .status = 404};
  log.Request(record, At(0));
  record.endpoint = "/\x1b[31m" + std::string(5000, 'a');
  log.Request(record, At(0));
  log.Message(LogLevel::kInfo, "a\r\nb\x1b");
  const auto lines = Lines();
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_THAT(lines[0],
              HasSubstr("endpoint=/a\\x0a2026\\x20info:\\x20request\\x20id\\x3dx status"));
  EXPECT_THAT(lines[1], HasSubstr("endpoint=/\\x1b[31m"));
  EXPECT_LT(lines[1].size(), 400u);
  EXPECT_THAT(lines[2], HasSubstr("a\\x0d\\x0ab\\x1b"));
}

TEST_F(LogTest, ProbesAreSilentAndRefusalsAreNot) {
  Log& log = Make({.level = LogLevel::kError});
  RequestRecord record{.method = "GET", .endpoint = "/health", .status = 200};
  log.Request(record, At(0));
  log.Request(Answered(), At(0));
  record.status = 503;
  log.Request(record, At(0));
  record.status = 499;
  log.Request(record, At(0));
  const auto lines = Lines();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_THAT(lines[0], HasSubstr("status=503"));
  EXPECT_THAT(lines[1], HasSubstr("status=499"));
}

TEST_F(LogTest, AFloodOfRefusalsIsCountedInOneLine) {
  Log& log = Make({});
  for (int i = 0; i < 5000; ++i) {
    log.Request({.endpoint = "/v1/models", .status = 401}, At(0.0001 * i));
    if (i % 5 == 0) log.Request({.endpoint = "/v1/models", .status = 429}, At(0.0001 * i));
  }
  log.Request(Answered(), At(0.6));  // what succeeds is not cut
  log.Tick({}, At(0.9));
  log.Tick({}, At(1.2));
  log.Tick({}, At(1.5));
  auto lines = Lines();
  ASSERT_EQ(lines.size(), 2u * Log::kMaxRefusalsPerSecond + 2);
  EXPECT_THAT(lines.back(), HasSubstr("not shown: 401 x 4980, 429 x 980"));
  log.Request({.endpoint = "/v1/models", .status = 401}, At(2));
  EXPECT_EQ(Lines().size(), lines.size() + 1);
}

TEST_F(LogTest, AFieldThatNobodyKnowsIsNamedOnce) {
  Log& log = Make({});
  log.IgnoredFields("a", {"n_discard", "x\ny"});
  log.IgnoredFields("b", {"n_discard"});
  log.IgnoredFields("c", {"n_discard", "other"});
  log.IgnoredFields("d", {});
  auto lines = Lines();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_THAT(lines[0], HasSubstr("warning: request id=a has fields"));
  EXPECT_THAT(lines[0], HasSubstr("n_discard, x\\x0ay "));
  EXPECT_THAT(lines[1], HasSubstr("id=c"));
  EXPECT_THAT(lines[1], HasSubstr("other"));
  EXPECT_THAT(lines[1], Not(HasSubstr("n_discard")));
  // A client that makes up names fills neither the log nor the memory.
  for (int i = 0; i < 1000; ++i) log.IgnoredFields("e", {"f" + std::to_string(i)});
  EXPECT_EQ(Lines().size(), 2 + Log::kMaxFieldNames - 3);
}

TEST_F(LogTest, TheSummaryComesWhileItWorks) {
  Log& log = Make({});
  ServerTotals totals;
  log.Tick(totals, At(0));
  log.Tick(totals, At(11));  // idle
  totals = {.num_prompt_tokens = 1000,
            .num_generated_tokens = 250,
            .num_queried_tokens = 1000,
            .num_hit_tokens = 900,
            .num_preemptions = 2,
            .num_running = 3,
            .num_waiting = 4,
            .held_bytes = 1,
            .budget_bytes = 8};
  log.Tick(totals, At(15));
  log.Tick(totals, At(21));
  totals.num_running = totals.num_waiting = 0;
  log.Tick(totals, At(31));
  log.KvCacheSize(76'640, 8192);
  const auto lines = Lines();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_THAT(lines[0],
              HasSubstr("Engine 000: Avg prompt throughput: 100.0 tokens/s, Avg generation "
                        "throughput: 25.0 tokens/s, Running: 3 reqs, Waiting: 4 reqs, Preemptions: "
                        "2, CPU KV cache usage: 12.5%, Prefix cache hit rate: 90.0%"));
  EXPECT_THAT(lines[1], HasSubstr("info: CPU KV cache size: 76,640 tokens, Maximum concurrency for "
                                  "8,192 tokens per request: 9.36x"));
}

// SEC-19
TEST_F(LogTest, PromptsAreWrittenOnlyIfAskedFor) {
  Make({.level = LogLevel::kTrace}).Prompt("id", "marker");
  EXPECT_TRUE(Lines().empty());
  Make({.logs_prompts = true}).Prompt("id", "mar\nker");
  ASSERT_EQ(Lines().size(), 1u);
  EXPECT_THAT(Lines()[0], HasSubstr("prompt id=id mar\\x0aker"));
}

}  // namespace
}  // namespace quire
