// Log: the server's lines on stderr: one a request, a summary each 10 s while it works, messages.
//
// Text, or with LogFormat::kJson one JSON object a line. No text of prompts or answers, no key
// (SEC-18, SEC-19). Whatever comes from a client is escaped: it can't make a second line.
//
// A line goes into a bounded queue (server/line_writer.h) and a thread writes it, so that a stderr
// that nobody reads stops no serving: lines are dropped then, and counted, and the count is logged
// when it goes on. Floods: of each status >= 400 the first kMaxRefusalsPerSecond lines of a second
// are written, the others are counted, and one line tells how many of which status there were.
//
// Threading: Request, IgnoredFields and Tick belong to the HTTP thread; Message and Prompt may be
// called by any. Cost: one formatted line and one short lock a call.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "server/line_writer.h"

namespace quire {

enum class LogFormat { kText, kJson };
enum class LogLevel { kTrace, kDebug, kInfo, kWarning, kError };

struct LogOptions {
  LogFormat format = LogFormat::kText;
  LogLevel level = LogLevel::kInfo;
  bool logs_prompts = false;  // the banner warns
};

// What there is to say about one request. Unset: it did not get so far.
struct RequestRecord {
  std::string id = {};
  std::string tenant = {};
  std::string key_name = {};
  std::string method = {};
  std::string endpoint = {};  // the path; never the query
  int status = 200;           // 499: the client left
  double seconds = 0;         // from the head to the end
  std::optional<uint64_t> num_prompt_tokens = {}, num_cached_tokens = {}, num_generated_tokens = {};
  std::optional<double> queue_seconds = {}, ttft_seconds = {}, tpot_seconds = {};
  std::string finish = {};      // "stop", "length", ...
  std::string match_stop = {};  // why the prefix match ended
  std::string code = {};        // of the error, if one was answered
};

// Counters since the start, and what is there now: the numbers of /metrics.
struct ServerTotals {
  uint64_t num_prompt_tokens = 0, num_generated_tokens = 0;
  uint64_t num_queried_tokens = 0, num_hit_tokens = 0;  // of the prefix cache
  uint64_t num_preemptions = 0;
  uint32_t num_running = 0, num_waiting = 0;
  uint64_t held_bytes = 0, budget_bytes = 0;  // of KV pages
};

class Log {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr int kMaxRefusalsPerSecond = 20;
  static constexpr std::chrono::seconds kSummaryPeriod{10};

  // Lines go to `fd`, which stays the caller's.
  Log(LogOptions options, int fd);

  void Message(LogLevel level, std::string_view text);
  void Request(const RequestRecord& record, Clock::time_point now);
  // Fields of a body that nobody knows: a warning, once for each name, and for so many names only,
  // since clients choose them. Values are not told.
  static constexpr size_t kMaxFieldNames = 100;
  void IgnoredFields(std::string_view id, const std::vector<std::string>& names);
  // The text of a prompt, if options say so.
  void Prompt(std::string_view id, std::string_view text);
  // A line in the form of vLLM's, each kSummaryPeriod in which something ran; what floods were cut.
  void Tick(const ServerTotals& totals, Clock::time_point now);
  // "CPU KV cache size: 76,640 tokens, Maximum concurrency for 8,192 tokens per request: 9.36x".
  void KvCacheSize(uint64_t num_tokens, uint32_t context_len);

  // Waits until what was logged is written, but no longer than this.
  bool Flush(std::chrono::milliseconds most) { return writer_.Flush(most); }
  uint64_t num_dropped_lines() const { return writer_.num_dropped_lines(); }
  const LogOptions& options() const { return options_; }

 private:
  // Refusals of one status within the second that now is.
  struct Flood {
    int num_written = 0;
    uint64_t num_cut = 0;
  };
  bool MayWriteRefusal(int status, Clock::time_point now);
  void EndFloods();
  std::string Summary(const ServerTotals& totals, double seconds) const;

  const LogOptions options_;
  LineWriter writer_;
  std::map<int, Flood> floods_;        // by status
  std::set<std::string> field_names_;  // that were told
  Clock::time_point flood_start_{};
  std::optional<Clock::time_point> summary_start_;
  ServerTotals last_totals_;
};

}  // namespace quire
