#include "cli/latency.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace quire {
namespace {

std::optional<double> DecodeRate(std::span<const AnswerTimes> answers) {
  double begin = 0, end = std::numeric_limits<double>::infinity();
  for (const AnswerTimes& answer : answers) {
    if (answer.tokens.empty()) continue;
    begin = std::max(begin, answer.tokens.front());
    end = std::min(end, answer.tokens.back());
  }
  size_t count = 0;
  for (const AnswerTimes& answer : answers)
    count += static_cast<size_t>(
        std::count_if(answer.tokens.begin(), answer.tokens.end(),
                      [&](double time) { return time > begin && time <= end; }));
  if (!(end > begin) || count == 0) return std::nullopt;
  return static_cast<double>(count) / (end - begin);
}

}  // namespace

double Percentile(std::span<const double> sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

Summary SummaryOf(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return {.mean = sum / static_cast<double>(values.size()),
          .median = Percentile(values, 0.50),
          .p95 = Percentile(values, 0.95),
          .p99 = Percentile(values, 0.99),
          .max = values.back()};
}

Latencies LatenciesOf(std::span<const AnswerTimes> answers) {
  std::vector<double> ttft, tpot, itl, e2el;
  double begin = std::numeric_limits<double>::infinity(), end = 0;
  Latencies latencies;
  for (const AnswerTimes& answer : answers) {
    const auto& tokens = answer.tokens;
    if (tokens.empty()) continue;
    latencies.num_tokens += tokens.size();
    begin = std::min(begin, answer.submitted);
    end = std::max(end, tokens.back());
    ttft.push_back(tokens.front() - answer.submitted);
    e2el.push_back(tokens.back() - answer.submitted);
    for (size_t i = 1; i < tokens.size(); ++i) itl.push_back(tokens[i] - tokens[i - 1]);
    if (tokens.size() > 1)
      tpot.push_back((tokens.back() - tokens.front()) / static_cast<double>(tokens.size() - 1));
  }
  if (latencies.num_tokens == 0) return latencies;
  latencies.duration = end - begin;
  latencies.ttft = SummaryOf(std::move(ttft));
  latencies.tpot = SummaryOf(std::move(tpot));
  latencies.itl = SummaryOf(std::move(itl));
  latencies.e2el = SummaryOf(std::move(e2el));
  latencies.decode_rate = DecodeRate(answers);
  return latencies;
}

void AddMilliseconds(const Summary& summary, const std::string& name,
                     nlohmann::ordered_json& report) {
  report["mean_" + name + "_ms"] = 1e3 * summary.mean;
  report["median_" + name + "_ms"] = 1e3 * summary.median;
  report["p95_" + name + "_ms"] = 1e3 * summary.p95;
  report["p99_" + name + "_ms"] = 1e3 * summary.p99;
  report["max_" + name + "_ms"] = 1e3 * summary.max;
}

std::string SummaryHeads() {
  return fmt::format("{:<26}{:>11}{:>11}{:>11}{:>11}{:>11}\n", "ms", "mean", "p50", "p95", "p99",
                     "max");
}

std::string SummaryLine(const std::string& name, const Summary& summary) {
  return fmt::format("{:<26}{:>11.2f}{:>11.2f}{:>11.2f}{:>11.2f}{:>11.2f}\n", name,
                     1e3 * summary.mean, 1e3 * summary.median, 1e3 * summary.p95, 1e3 * summary.p99,
                     1e3 * summary.max);
}

}  // namespace quire
