// What users of many answers felt: times of tokens, summed up.
//
// Names and definitions are those of `vllm bench serve`: ttft: from the request to its first token;
// tpot: the mean gap between the tokens of an answer after the first; itl: each such gap; e2el:
// from the request to its last token.
//
// Threading: plain values.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace quire {

// Between the two nearest values, as numpy's. Requires: sorted, not empty; share: 0 to 1.
double Percentile(std::span<const double> sorted, double share);

struct Summary {
  double mean = 0, median = 0, p95 = 0, p99 = 0, max = 0;
};
// All 0 for none.
Summary SummaryOf(std::vector<double> values);

// Of one answer, in seconds since the start of the measurement.
struct AnswerTimes {
  double submitted = 0;
  std::vector<double> tokens;  // ascending
};

struct Latencies {
  Summary ttft, tpot, itl, e2el;  // seconds
  double duration = 0;            // from the first request to the last token
  size_t num_tokens = 0;
  // Tokens a second from the moment that all have a first token until one has its last: what the
  // batch decodes. None if there is no such time.
  std::optional<double> decode_rate;
};
// Answers without a token don't count.
Latencies LatenciesOf(std::span<const AnswerTimes> answers);

// Adds mean_NAME_ms, median_NAME_ms, p95_, p99_ and max_.
void AddMilliseconds(const Summary& summary, const std::string& name,
                     nlohmann::ordered_json& report);
// "  1.23  ..." in columns, milliseconds; with the heads of the columns above it.
std::string SummaryHeads();
std::string SummaryLine(const std::string& name, const Summary& summary);

}  // namespace quire
