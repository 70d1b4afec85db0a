// ServeLoad: sends the prompts of a `quire bench serve` to a server, each at its time and so many
// at once, and times the chunks of their streams.
//
// Threading: one thread; light, since client and server often share the cores: a chunk is looked at
// for its keys and not parsed.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cli/http_client.h"
#include "cli/serve_bench/call_result.h"
#include "cli/serve_bench/event_scanner.h"
#include "cli/serve_bench/prompt_set.h"

namespace quire {

struct ServeLoadOptions {
  std::string path = "/v1/completions";
  bool is_chat = false;
  std::string model = {};
  bool ignore_eos = false;
  nlohmann::json extra_body = {};  // an object whose keys replace ours; or null
  std::vector<std::pair<std::string, std::string>> headers = {};
  uint32_t max_concurrency = 0;  // 0: no limit
};

class ServeLoad {
 public:
  // The client and the prompts must outlive it.
  ServeLoad(HttpClient& client, const ServeLoadOptions& options,
            std::span<const BenchPrompt> prompts);

  // Sends all and returns when the last has ended. `on_progress`: calls ended and answer tokens.
  void Run(const std::function<void(size_t ended, uint64_t tokens)>& on_progress);

  std::span<const CallResult> results() const { return results_; }
  double duration() const { return duration_; }  // seconds, until the last call's end

 private:
  struct Live {
    EventScanner scanner;
    bool is_done = false;  // [DONE] has come
    std::string refusal;   // the beginning of a body that is no stream
  };

  void StartDue();
  void Start(size_t index);
  void OnBody(size_t index, Live& live, int status, std::string_view piece);
  void OnData(size_t index, Live& live, std::string_view data);
  void OnEnd(size_t index, const Live& live, const StatusOr<int>& status);
  std::string BodyOf(const BenchPrompt& prompt) const;

  HttpClient& client_;
  const ServeLoadOptions& options_;
  std::span<const BenchPrompt> prompts_;
  std::vector<CallResult> results_;
  std::function<void(size_t, uint64_t)> on_progress_;
  std::chrono::steady_clock::time_point start_;
  size_t num_due_ = 0, num_started_ = 0, num_ended_ = 0;
  uint64_t num_tokens_ = 0;
  double duration_ = 0;
};

// The message of an OpenAI error body, or the body's beginning.
std::string ErrorMessageOf(const std::string& body);

}  // namespace quire
