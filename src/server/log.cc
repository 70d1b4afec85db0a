#include "server/log.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/message_text.h"
#include "server/api/json_text.h"

namespace quire {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxWordBytes = 160;     // of a client's words in a line
constexpr size_t kMaxTextBytes = 16'384;  // of a message

constexpr std::array kLevelNames = {"trace", "debug", "info", "warning", "error"};

std::string_view NameOf(LogLevel level) { return kLevelNames[static_cast<size_t>(level)]; }

// "2026-11-30T13:52:00.123Z"
std::string Now() {
  const auto now = std::chrono::system_clock::now();
  const auto ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count();
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(now)), ms % 1000);
}

// Without line ends and other control characters: a text that makes no second line and moves no
// cursor.
std::string OneLine(std::string_view text) {
  std::string line;
  for (const char c : text.substr(0, kMaxTextBytes)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f)
      fmt::format_to(std::back_inserter(line), "\\x{:02x}", byte);
    else
      line += c;
  }
  return line;
}

// A client's word as one word: what is not plain ASCII, and what could look like the next field,
// is escaped.
std::string Word(std::string_view text) {
  std::string word;
  for (const char c : text.substr(0, kMaxWordBytes)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= 0x20 || byte >= 0x7f || c == '=' || c == '\\' || c == '"')
      fmt::format_to(std::back_inserter(word), "\\x{:02x}", byte);
    else
      word += c;
  }
  if (text.size() > kMaxWordBytes) word += "...";
  return word;
}

std::string JsonLine(LogLevel level, std::string_view event, const Json& rest) {
  Json line = {{"time", Now()}, {"level", NameOf(level)}, {"event", event}};
  line.update(rest);
  return ToText(line);
}

std::string TextLine(LogLevel level, std::string_view text) {
  return fmt::format("{} {}: {}", Now(), NameOf(level), text);
}

// Names and values of a record, in the order of the line.
Json FieldsOf(const RequestRecord& record) {
  Json fields = {
      {"id", record.id},         {"tenant", record.tenant},     {"key", record.key_name},
      {"method", record.method}, {"endpoint", record.endpoint}, {"status", record.status}};
  const auto seconds = [&](const char* name, std::optional<double> value) {
    if (value.has_value()) fields[name] = std::round(*value * 1e6) / 1e6;
  };
  const auto count = [&](const char* name, std::optional<uint64_t> value) {
    if (value.has_value()) fields[name] = *value;
  };
  seconds("seconds", record.seconds);
  count("prompt", record.num_prompt_tokens);
  count("cached", record.num_cached_tokens);
  count("generated", record.num_generated_tokens);
  seconds("queue", record.queue_seconds);
  seconds("ttft", record.ttft_seconds);
  seconds("tpot", record.tpot_seconds);
  const auto word = [&](const char* name, const std::string& value) {
    if (!value.empty()) fields[name] = value;
  };
  word("finish", record.finish);
  word("match_stop", record.match_stop);
  word("code", record.code);
  for (auto& [name, value] : fields.items())
    if (value.is_string() && value.get_ref<const std::string&>().size() > kMaxWordBytes)
      value = value.get_ref<const std::string&>().substr(0, kMaxWordBytes) + "...";
  return fields;
}

std::string TextOf(const Json& fields) {
  std::string text = "request";
  for (const auto& [name, value] : fields.items()) {
    if (value.is_string() && value.get_ref<const std::string&>().empty()) continue;
    text += " " + name + "=";
    text += value.is_string() ? Word(value.get_ref<const std::string&>()) : value.dump();
  }
  return text;
}

bool IsProbe(const RequestRecord& record) {
  return record.endpoint.starts_with("/health") || record.endpoint == "/ping" ||
         record.endpoint == "/metrics" || record.endpoint == "/version";
}

}  // namespace

Log::Log(LogOptions options, int fd)
    : options_(options), writer_(fd, [format = options.format](uint64_t num_lines) {
        const std::string text =
            fmt::format("{} lines were dropped here: stderr was not read fast enough", num_lines);
        return format == LogFormat::kJson ? JsonLine(LogLevel::kWarning, "dropped",
                                                     {{"message", text}, {"lines", num_lines}})
                                          : TextLine(LogLevel::kWarning, text);
      }) {}

void Log::Message(LogLevel level, std::string_view text) {
  if (level < options_.level) return;
  writer_.Write(options_.format == LogFormat::kJson
                    ? JsonLine(level, "message", {{"message", text.substr(0, kMaxTextBytes)}})
                    : TextLine(level, OneLine(text)));
}

void Log::Request(const RequestRecord& record, Clock::time_point now) {
  const bool is_refusal = record.status >= 400;
  const LogLevel level = record.status >= 500 && record.status != 503 ? LogLevel::kError
                         : !is_refusal && IsProbe(record)             ? LogLevel::kDebug
                                                                      : LogLevel::kInfo;
  if (is_refusal ? !MayWriteRefusal(record.status, now) : level < options_.level) return;
  const Json fields = FieldsOf(record);
  writer_.Write(options_.format == LogFormat::kJson ? JsonLine(level, "request", fields)
                                                    : TextLine(level, TextOf(fields)));
}

bool Log::MayWriteRefusal(int status, Clock::time_point now) {
  if (now - flood_start_ >= std::chrono::seconds(1)) {
    EndFloods();
    flood_start_ = now;
  }
  Flood& flood = floods_[status];
  if (flood.num_written < kMaxRefusalsPerSecond) {
    ++flood.num_written;
    return true;
  }
  ++flood.num_cut;
  return false;
}

void Log::EndFloods() {
  Json counts = Json::object();
  std::string text;
  for (const auto& [status, flood] : floods_) {
    if (flood.num_cut == 0) continue;
    counts[std::to_string(status)] = flood.num_cut;
    text += fmt::format("{}{} x {}", text.empty() ? "" : ", ", status, flood.num_cut);
  }
  floods_.clear();
  if (text.empty()) return;
  writer_.Write(options_.format == LogFormat::kJson
                    ? JsonLine(LogLevel::kWarning, "flood", {{"not_shown", counts}})
                    : TextLine(LogLevel::kWarning, "requests refused and not shown: " + text));
}

void Log::IgnoredFields(std::string_view id, const std::vector<std::string>& names) {
  std::vector<std::string> news;
  for (const std::string& name : names)
    if (field_names_.size() < kMaxFieldNames && field_names_.insert(name).second)
      news.push_back(Word(name));
  if (news.empty() || options_.level > LogLevel::kWarning) return;
  writer_.Write(
      options_.format == LogFormat::kJson
          ? JsonLine(LogLevel::kWarning, "ignored_fields", {{"id", id}, {"fields", news}})
          : TextLine(LogLevel::kWarning,
                     fmt::format("request id={} has fields that nobody knows, ignored: {} "
                                 "(told once for each name)",
                                 Word(id), fmt::join(news, ", "))));
}

void Log::Prompt(std::string_view id, std::string_view text) {
  if (!options_.logs_prompts) return;
  writer_.Write(
      options_.format == LogFormat::kJson
          ? JsonLine(LogLevel::kInfo, "prompt",
                     {{"id", id}, {"prompt", text.substr(0, kMaxTextBytes)}})
          : TextLine(LogLevel::kInfo, fmt::format("prompt id={} {}", Word(id), OneLine(text))));
}

void Log::Tick(const ServerTotals& totals, Clock::time_point now) {
  if (now - flood_start_ >= std::chrono::seconds(1)) EndFloods();
  if (!summary_start_.has_value()) {
    summary_start_ = now;
    last_totals_ = totals;
  }
  const auto period = now - *summary_start_;
  if (period < kSummaryPeriod) return;
  const bool is_idle = totals.num_running == 0 && totals.num_waiting == 0 &&
                       totals.num_prompt_tokens == last_totals_.num_prompt_tokens &&
                       totals.num_generated_tokens == last_totals_.num_generated_tokens;
  if (!is_idle && options_.level <= LogLevel::kInfo)
    writer_.Write(Summary(totals, std::chrono::duration<double>(period).count()));
  summary_start_ = now;
  last_totals_ = totals;
}

std::string Log::Summary(const ServerTotals& totals, double seconds) const {
  const auto rate = [&](uint64_t now, uint64_t before) {
    return static_cast<double>(now - before) / seconds;
  };
  const auto percent = [](uint64_t part, uint64_t whole) {
    return whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  };
  const double prompt_rate = rate(totals.num_prompt_tokens, last_totals_.num_prompt_tokens);
  const double generation_rate =
      rate(totals.num_generated_tokens, last_totals_.num_generated_tokens);
  const double kv_usage = percent(totals.held_bytes, totals.budget_bytes);
  const double hit_rate = percent(totals.num_hit_tokens, totals.num_queried_tokens);
  if (options_.format == LogFormat::kJson)
    return JsonLine(LogLevel::kInfo, "summary",
                    {{"prompt_tokens_per_second", std::round(prompt_rate * 10) / 10},
                     {"generation_tokens_per_second", std::round(generation_rate * 10) / 10},
                     {"running", totals.num_running},
                     {"waiting", totals.num_waiting},
                     {"preemptions", totals.num_preemptions},
                     {"kv_usage_percent", std::round(kv_usage * 10) / 10},
                     {"prefix_hit_percent", std::round(hit_rate * 10) / 10}});
  return TextLine(
      LogLevel::kInfo,
      fmt::format("Engine 000: Avg prompt throughput: {:.1f} tokens/s, Avg generation throughput: "
                  "{:.1f} tokens/s, Running: {} reqs, Waiting: {} reqs, Preemptions: {}, CPU KV "
                  "cache usage: {:.1f}%, Prefix cache hit rate: {:.1f}%",
                  prompt_rate, generation_rate, totals.num_running, totals.num_waiting,
                  totals.num_preemptions, kv_usage, hit_rate));
}

void Log::KvCacheSize(uint64_t num_tokens, uint32_t context_len) {
  Message(LogLevel::kInfo,
          fmt::format("CPU KV cache size: {} tokens, Maximum concurrency for {} tokens per "
                      "request: {:.2f}x",
                      GroupDigits(num_tokens), GroupDigits(context_len),
                      context_len == 0 ? 0.0 : static_cast<double>(num_tokens) / context_len));
}

}  // namespace quire
