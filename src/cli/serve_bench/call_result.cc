#include "cli/serve_bench/call_result.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numeric>

#include "base/errors.h"
#include "cli/latency.h"

namespace quire {
namespace {

using Json = nlohmann::ordered_json;

double TtftOf(const CallResult& call) { return call.chunks.front() - call.started; }
double E2elOf(const CallResult& call) { return call.chunks.back() - call.started; }
double TpotOf(const CallResult& call) {
  return call.output_tokens > 1
             ? (call.chunks.back() - call.chunks.front()) / (call.output_tokens - 1)
             : 0;
}

bool IsGood(const CallResult& call, std::span<const Goal> goals) {
  return std::all_of(goals.begin(), goals.end(), [&](const Goal& goal) {
    const double seconds = goal.metric == "ttft"   ? TtftOf(call)
                           : goal.metric == "tpot" ? TpotOf(call)
                                                   : E2elOf(call);
    return 1e3 * seconds <= goal.milliseconds;
  });
}

std::string PercentileName(double percentile) { return fmt::format("p{:g}", percentile); }

void AddMetric(const std::string& name, std::vector<double> values, const SumUpOptions& options,
               Json& report) {
  std::sort(values.begin(), values.end());
  const double count = static_cast<double>(std::max<size_t>(values.size(), 1));
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const auto percentile = [&](double share) {
    return values.empty() ? 0 : 1e3 * Percentile(values, share);
  };
  report["mean_" + name + "_ms"] = 1e3 * mean;
  report["median_" + name + "_ms"] = percentile(0.5);
  report["std_" + name + "_ms"] = 1e3 * std::sqrt(squares / count);
  for (const double each : options.percentiles)
    report[PercentileName(each) + "_" + name + "_ms"] = percentile(each / 100);
}

void AddDetails(std::span<const CallResult> results, Json& report) {
  for (const char* key : {"input_lens", "output_lens", "ttfts", "itls", "start_times", "errors"})
    report[key] = Json::array();
  for (const CallResult& call : results) {
    report["input_lens"].push_back(call.prompt_tokens);
    report["output_lens"].push_back(call.output_tokens);
    report["ttfts"].push_back(call.chunks.empty() ? 0 : TtftOf(call));
    Json gaps = Json::array();
    for (size_t i = 1; i < call.chunks.size(); ++i)
      gaps.push_back(call.chunks[i] - call.chunks[i - 1]);
    report["itls"].push_back(std::move(gaps));
    report["start_times"].push_back(call.started);
    report["errors"].push_back(call.error);
  }
}

}  // namespace

StatusOr<Goal> ParseGoal(const std::string& text) {
  const size_t colon = text.find(':');
  Goal goal{.metric = text.substr(0, colon)};
  constexpr std::array<const char*, 3> kMetrics = {"ttft", "tpot", "e2el"};
  const bool is_known = std::find(kMetrics.begin(), kMetrics.end(), goal.metric) != kMetrics.end();
  const char* end = text.data() + text.size();
  if (colon != std::string::npos && is_known) {
    const auto parsed = std::from_chars(text.data() + colon + 1, end, goal.milliseconds);
    if (parsed.ec == std::errc() && parsed.ptr == end && goal.milliseconds > 0) return goal;
  }
  return InvalidArgument("--goodput '{}': need ttft:MS, tpot:MS or e2el:MS", text);
}

void SumUp(std::span<const CallResult> results, const SumUpOptions& options, Json& report) {
  std::vector<double> ttft, tpot, itl, e2el;
  uint64_t input = 0, output = 0, cached = 0, completed = 0, good = 0;
  const std::string* first_error = nullptr;
  for (const CallResult& call : results) {
    if (!call.error.empty()) {
      if (first_error == nullptr) first_error = &call.error;
      continue;
    }
    ++completed;
    input += call.prompt_tokens;
    output += call.output_tokens;
    cached += call.cached_tokens;
    good += IsGood(call, options.goals) ? 1 : 0;
    ttft.push_back(TtftOf(call));
    e2el.push_back(E2elOf(call));
    if (call.output_tokens > 1) tpot.push_back(TpotOf(call));
    for (size_t i = 1; i < call.chunks.size(); ++i)
      itl.push_back(call.chunks[i] - call.chunks[i - 1]);
  }
  const auto rate = [&](uint64_t count) {
    return options.duration > 0 ? static_cast<double>(count) / options.duration : 0;
  };
  report["duration"] = options.duration;
  report["completed"] = completed;
  report["failed"] = results.size() - completed;
  report["first_error"] = first_error == nullptr ? Json(nullptr) : Json(*first_error);
  report["total_input_tokens"] = input;
  report["total_cached_tokens"] = cached;
  report["total_output_tokens"] = output;
  report["request_throughput"] = rate(completed);
  report["request_goodput"] = options.goals.empty() ? Json(nullptr) : Json(rate(good));
  report["output_throughput"] = rate(output);
  report["total_token_throughput"] = rate(input + output);
  AddMetric("ttft", std::move(ttft), options, report);
  AddMetric("tpot", std::move(tpot), options, report);
  AddMetric("itl", std::move(itl), options, report);
  AddMetric("e2el", std::move(e2el), options, report);
  if (options.is_detailed) AddDetails(results, report);
}

std::string TableOf(const Json& report, const SumUpOptions& options) {
  std::string table;
  const auto line = [&](const char* name, const std::string& value) {
    table += fmt::format("{:<34}{:>12}\n", name, value);
  };
  const auto count = [&](const char* key) {
    return fmt::format("{}", report[key].get<uint64_t>());
  };
  const auto real = [&](const char* key) {
    return fmt::format("{:.2f}", report[key].get<double>());
  };
  line("requests answered", count("completed"));
  line("requests failed", count("failed"));
  line("seconds", real("duration"));
  line("prompt tokens", count("total_input_tokens"));
  line("of them cached", count("total_cached_tokens"));
  line("answer tokens", count("total_output_tokens"));
  line("requests/s", real("request_throughput"));
  if (!report["request_goodput"].is_null())
    line("requests/s within --goodput", real("request_goodput"));
  line("answer tokens/s", real("output_throughput"));
  line("all tokens/s", real("total_token_throughput"));
  line("this client's CPU, % of a core",
       fmt::format("{:.1f}", 100 * report["client_cpu_share"].get<double>()));
  table += fmt::format("\n{:<12}{:>12}{:>12}{:>12}", "ms", "mean", "std", "median");
  for (const double each : options.percentiles)
    table += fmt::format("{:>12}", PercentileName(each));
  table += "\n";
  for (const char* name : {"ttft", "tpot", "itl", "e2el"}) {
    table += fmt::format("{:<12}", name);
    std::vector<std::string> columns = {"mean", "std", "median"};
    for (const double each : options.percentiles) columns.push_back(PercentileName(each));
    for (const std::string& column : columns)
      table +=
          fmt::format("{:>12.2f}", report[fmt::format("{}_{}_ms", column, name)].get<double>());
    table += "\n";
  }
  if (!report["first_error"].is_null())
    table += fmt::format("\nfirst error: {}\n", report["first_error"].get<std::string>());
  return table;
}

}  // namespace quire
