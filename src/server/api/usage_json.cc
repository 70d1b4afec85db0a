#include "server/api/usage_json.h"

#include <algorithm>

#include "server/api/json_text.h"

namespace quire {
namespace {

void AppendCount(std::string& json, std::string_view key, uint64_t value) {
  AppendJsonComma(json);
  json += '"';
  json += key;
  json += "\":";
  AppendJsonInteger(json, static_cast<int64_t>(value));
}

void AppendRate(std::string& json, std::string_view key, double value) {
  AppendJsonComma(json);
  json += '"';
  json += key;
  json += "\":";
  AppendJsonRounded(json, value);
}

double PerSecond(uint64_t count, double seconds) {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

}  // namespace

uint64_t NumSampled(const Answer& answer) {
  uint64_t count = 0;
  for (uint32_t i = 0; i < answer.num_choices(); ++i) {
    const bool has_ended = answer.ended(i);
    count += answer.tokens(i).size();
    if (has_ended && answer.stop_token(i).has_value()) ++count;
  }
  return count;
}

bool HasPromptReport(const Answer& answer) {
  for (uint32_t i = 0; i < answer.num_choices(); ++i)
    if (answer.ended(i) || !answer.tokens(i).empty()) return true;
  return false;
}

CallCosts CostsOf(std::span<const std::shared_ptr<Answer>> answers) {
  CallCosts costs;
  for (const auto& answer : answers) {
    costs.completion_tokens += NumSampled(*answer);
    costs.num_preemptions += answer->num_preemptions();
    const PromptReport& report = answer->prompt();
    costs.prompt_tokens += report.prompt_len;  // the only part that is there from the start
    if (!HasPromptReport(*answer)) continue;
    if (answer == answers.front()) costs.match_stop = report.match_stop;
    costs.cached_tokens += report.num_cached;
    costs.cache_write_tokens += report.num_inserted;
    costs.queue_seconds = std::max(costs.queue_seconds, report.queue_seconds);
    costs.prompt_seconds =
        std::max(costs.prompt_seconds, report.first_token_seconds - report.queue_seconds);
    for (uint32_t i = 0; i < answer->num_choices(); ++i) {
      const auto count = static_cast<uint32_t>(answer->tokens(i).size());
      if (count == 0) continue;
      costs.decode_seconds = std::max(
          costs.decode_seconds, answer->token_seconds(i, count - 1) - report.first_token_seconds);
    }
  }
  return costs;
}

void AppendUsage(std::string& json, const CallCosts& costs) {
  json += '{';
  AppendCount(json, "prompt_tokens", costs.prompt_tokens);
  AppendCount(json, "completion_tokens", costs.completion_tokens);
  AppendCount(json, "total_tokens", costs.prompt_tokens + costs.completion_tokens);
  json += ",\"prompt_tokens_details\":{";
  AppendCount(json, "cached_tokens", costs.cached_tokens);
  AppendCount(json, "cache_write_tokens", costs.cache_write_tokens);
  json += "},\"completion_tokens_details\":{\"reasoning_tokens\":0}}";
}

void AppendTimings(std::string& json, const CallCosts& costs) {
  const uint64_t computed = costs.prompt_tokens - costs.cached_tokens;
  json += '{';
  AppendCount(json, "cache_n", costs.cached_tokens);
  AppendCount(json, "prompt_n", computed);
  AppendRate(json, "prompt_ms", costs.prompt_seconds * 1e3);
  AppendRate(json, "prompt_per_second", PerSecond(computed, costs.prompt_seconds));
  AppendCount(json, "predicted_n", costs.completion_tokens);
  AppendRate(json, "predicted_ms", costs.decode_seconds * 1e3);
  AppendRate(json, "predicted_per_second",
             PerSecond(costs.completion_tokens, costs.decode_seconds));
  json += '}';
}

void AppendQuire(std::string& json, const CallCosts& costs, std::optional<int64_t> retained_until) {
  json += "{\"match_stop\":";
  AppendJsonString(json, MatchStopName(costs.match_stop));
  json += ",\"restored_tokens\":{\"host\":0,\"disk\":0,\"remote\":0},\"retained_until\":";
  if (retained_until.has_value()) {
    AppendJsonInteger(json, *retained_until);
  } else {
    json += "null";
  }
  AppendRate(json, "queue_ms", costs.queue_seconds * 1e3);
  AppendCount(json, "preemptions", costs.num_preemptions);
  json += '}';
}

}  // namespace quire
