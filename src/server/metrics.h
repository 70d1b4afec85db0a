// Metrics: what GET /metrics tells, in Prometheus' text format 0.0.4.
//
// Two kinds of numbers. What the HTTP side sees (times, ends, refusals) is observed here as it
// happens. What the engine counts is read at each scrape, all of one moment, from the same
// KvReport as the banner and /quire/v1/cache.
//
// Names are vLLM's where it has one, old names beside the new, and quire_* for the rest; each with
// its type and labels stands in docs/server.md. Labels are bounded: `tenant` are those that keys
// name, `handler` is the pattern of a route and never a path.
//
// Threading: any thread; each observation takes a short lock of its own family.
// Cost: an observation is O(buckets); a scrape is O(series) and asks the engine once.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "engine/answer.h"
#include "server/kv_report.h"

namespace quire {

// What the numbers are of; fixed.
struct MetricsOptions {
  std::string model_name;
  std::string version;          // of this program
  std::string instruction_set;  // "avx2"
  std::string kv_codec;         // "f16"
  uint32_t context_len = 0;     // the last bucket of token counts
};

// The four ends that vLLM's request_success_total knows and we have.
enum class RequestEnd { kStop, kLength, kAbort, kError };
RequestEnd RequestEndOf(FinishReason reason);

// A generation request that has ended. Times are seconds from its arrival.
struct EndedRequest {
  RequestEnd end = RequestEnd::kStop;
  uint32_t prompt_tokens = 0, cached_tokens = 0;
  uint64_t generated_tokens = 0;  // over all choices
  uint32_t longest_choice = 0;    // tokens
  uint32_t num_choices = 1;
  std::optional<uint32_t> max_tokens = {};
  uint32_t num_preemptions = 0;
  double queue_seconds = 0;                        // until it started
  std::optional<double> first_token_seconds = {};  // unset: it had none
  double end_seconds = 0;
};
// Of an answer whose choices have all ended, by now.
EndedRequest EndedRequestOf(const Answer& answer, std::optional<uint32_t> max_tokens);

class Metrics {
 public:
  explicit Metrics(const MetricsOptions& options);
  ~Metrics();

  // The first token of a request has come, `seconds` after its arrival; a later one, that long
  // after the one before.
  void ObserveFirstToken(double seconds);
  void ObserveTokenGap(double seconds);
  void ObserveEnd(const EndedRequest& request);

  // `handler`: the pattern of the route, "/v1/models/{id}"; "none" for no route. Another method
  // than those that routes take is "other".
  void ObserveHttp(std::string_view method, int status, std::string_view handler, double seconds);
  // A refusal, by the code of its error body: "queue_full".
  void CountRejection(std::string_view code);
  // Refused because --max-queue or --max-queue-tokens was reached.
  void CountFullQueue(bool is_of_tokens);
  // A client left before its answer's end, in this phase: queued, prefill or decode.
  void CountDisconnect(std::string_view phase);
  // The engine made no step for 10 s although it had work.
  void CountEngineStall();
  // Streams whose client does not take what is there, now.
  void SetStalledStreams(uint32_t count);

  // The text of a scrape. Null, while the model loads: without the engine's numbers.
  std::string Text(Engine* engine) const;
  // The same, of numbers that were read already.
  std::string Text(const EngineStats& stats, const KvReport& report) const;

  const MetricsOptions& options() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Its content type.
constexpr char kMetricsContentType[] = "text/plain; version=0.0.4; charset=utf-8";

}  // namespace quire
