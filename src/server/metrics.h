// Metrics: what GET /metrics tells, in Prometheus' text format 0.0.4.
//
// Two kinds of numbers. What the HTTP side sees (times, ends, refusals) is observed here as it
// happens. What the engine counts is read at each scrape, all of one moment, from the same
// KvReport as the banner and /quire/v1/cache.
//
// Names are vLLM's where it has one, old names beside the new, and quire_* for the rest; each with
// its type and labels stands in docs/metrics.md. Labels are bounded: `tenant` are those that keys
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

#include "server/call_summary.h"
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

class Metrics {
 public:
  explicit Metrics(const MetricsOptions& options);
  ~Metrics();

  // A generation request has ended, or was refused.
  void ObserveCall(const CallSummary& call);

  // `handler`: the pattern of the route, "/v1/models/{id}"; "none" for no route. Another method
  // than those that routes take is "other".
  void ObserveHttp(std::string_view method, int status, std::string_view handler, double seconds);
  // A refusal before there was a call, by the code of its error body: "invalid_api_key".
  void CountRejection(std::string_view code);
  // Engine::stalled_seconds(), a few times a second: counts a stall each time that 10 s are passed.
  void NoteStall(double stalled_seconds);
  // Streams whose client does not take what is there, now.
  void SetStalledStreams(uint32_t count);

  // The text of a scrape. Null, while the model loads: without the engine's numbers.
  std::string Text(Engine* engine) const;
  // The same, of numbers that were read already.
  std::string Text(const EngineStats& stats, const KvReport& report) const;

  const MetricsOptions& options() const;
  // Prompt tokens computed in a second of prefill, as the last calls had it; nothing without such
  // calls.
  std::optional<double> prefill_tokens_per_second() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Its content type.
constexpr char kMetricsContentType[] = "text/plain; version=0.0.4; charset=utf-8";

}  // namespace quire
