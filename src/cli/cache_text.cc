#include "cli/cache_text.h"

#include <fmt/format.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "base/message_text.h"
#include "cli/text_table.h"

namespace quire {
namespace {

using Json = nlohmann::ordered_json;

const Json& Field(const Json& object, const char* name) {
  static const Json kNull;
  const auto found = object.is_object() ? object.find(name) : object.end();
  return object.is_object() && found != object.end() ? *found : kNull;
}

// A number with its digits grouped for people; as it is for programs.
std::string Number(const Json& value, bool is_aligned) {
  if (value.is_number_unsigned() || value.is_number_integer()) {
    const auto number = value.get<int64_t>();
    if (number < 0 || !is_aligned) return std::to_string(number);
    return GroupDigits(static_cast<uint64_t>(number));
  }
  if (value.is_number()) return fmt::format("{:.2f}", value.get<double>());
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  return "-";
}

std::string Name(const Json& value) {
  const auto* text = value.get_ptr<const std::string*>();
  return text == nullptr || text->empty() ? "-" : Printable(*text);
}

// "12 s", "5 min", "3 h", "2 d".
std::string AgeText(int64_t seconds) {
  if (seconds < 0) seconds = 0;
  if (seconds < 120) return fmt::format("{} s", seconds);
  if (seconds < 120 * 60) return fmt::format("{} min", seconds / 60);
  if (seconds < 48 * 3600) return fmt::format("{} h", seconds / 3600);
  return fmt::format("{} d", seconds / 86400);
}

std::string KeptText(const Json& prefix, std::time_t now) {
  if (Field(prefix, "pinned") == true) return "pinned";
  const Json& until = Field(prefix, "retained_until");
  return until.is_number() ? AgeText(until.get<int64_t>() - now) : "-";
}

}  // namespace

std::string CacheInfoText(const Json& cache, bool is_aligned) {
  std::string text;
  TextTable values({{"what"}, {"value", true}});
  for (const char* name :
       {"budget_bytes", "held_bytes", "cached_bytes", "pinned_bytes", "free_bytes",
        "committed_bytes", "slack_bytes", "used_slots", "held_slots", "pool_pages", "pool_tokens",
        "longest_request_tokens", "context_len", "concurrency_at_full_context", "page_size"})
    if (!Field(cache, name).is_null())
      values.AddRow({name, Number(Field(cache, name), is_aligned)});
  if (!Field(cache, "codec").is_null()) values.AddRow({"codec", Name(Field(cache, "codec"))});
  text += values.Text(is_aligned);
  if (const Json& groups = Field(cache, "groups"); groups.is_array() && !groups.empty()) {
    TextTable table({{"group"}, {"state"}, {"pages", true}, {"bytes", true}});
    for (const Json& group : groups)
      for (const char* state : {"held", "cached", "pinned"})
        table.AddRow({Name(Field(group, "name")), state,
                      Number(Field(Field(group, state), "pages"), is_aligned),
                      Number(Field(Field(group, state), "bytes"), is_aligned)});
    text += "\n" + table.Text(is_aligned);
  }
  if (const Json& tenants = Field(cache, "tenants"); tenants.is_array() && !tenants.empty()) {
    TextTable table({{"tenant"},
                     {"bytes", true},
                     {"held", true},
                     {"cached", true},
                     {"pinned", true},
                     {"retained", true}});
    for (const Json& tenant : tenants)
      table.AddRow({Name(Field(tenant, "name")), Number(Field(tenant, "bytes"), is_aligned),
                    Number(Field(tenant, "held_bytes"), is_aligned),
                    Number(Field(tenant, "cached_bytes"), is_aligned),
                    Number(Field(tenant, "pinned_bytes"), is_aligned),
                    Number(Field(tenant, "retained_bytes"), is_aligned)});
    text += "\n" + table.Text(is_aligned);
  }
  return text;
}

std::string PrefixesText(const Json& prefixes, bool is_aligned, std::time_t now) {
  TextTable table({{"id"},
                   {"tokens", true},
                   {"pages", true},
                   {"bytes", true},
                   {"hits", true},
                   {"unused for", true},
                   {"holders", true},
                   {"kept", true},
                   {"tenant"},
                   {"label"}});
  for (const Json& prefix : Field(prefixes, "prefixes")) {
    const Json& used = Field(prefix, "last_used");
    table.AddRow({Name(Field(prefix, "id")), Number(Field(prefix, "tokens"), is_aligned),
                  Number(Field(prefix, "pages"), is_aligned),
                  Number(Field(prefix, "bytes"), is_aligned),
                  Number(Field(prefix, "hits"), is_aligned),
                  used.is_number() ? AgeText(now - used.get<int64_t>()) : "-",
                  Number(Field(prefix, "holders"), is_aligned), KeptText(prefix, now),
                  Name(Field(prefix, "tenant")), Name(Field(prefix, "label"))});
  }
  return table.Text(is_aligned);
}

std::string RequestsText(const Json& requests, bool is_aligned) {
  TextTable table({{"id", true},
                   {"phase"},
                   {"prompt", true},
                   {"computed", true},
                   {"cached", true},
                   {"generated", true},
                   {"pages", true},
                   {"priority", true},
                   {"seconds", true},
                   {"tenant"},
                   {"request id"}});
  for (const Json& request : Field(requests, "requests"))
    table.AddRow({Number(Field(request, "id"), false), Name(Field(request, "phase")),
                  Number(Field(request, "prompt_tokens"), is_aligned),
                  Number(Field(request, "prompt_computed"), is_aligned),
                  Number(Field(request, "cached_tokens"), is_aligned),
                  Number(Field(request, "generated_tokens"), is_aligned),
                  Number(Field(request, "pages"), is_aligned),
                  Number(Field(request, "priority"), is_aligned),
                  Number(Field(request, "seconds"), is_aligned), Name(Field(request, "tenant")),
                  Name(Field(request, "request_id"))});
  return table.Text(is_aligned);
}

std::string StatLines::Line(const std::vector<std::string>& cells) const {
  std::string line;
  for (const std::string& cell : cells)
    line += is_aligned_ ? fmt::format("{:>13}", cell) : (line.empty() ? "" : "\t") + cell;
  return line + "\n";
}

std::string StatLines::Header() const {
  return Line({"running", "waiting", "prompt/s", "generated/s", "KV held %", "slots used %",
               "hits %", "preempted"});
}

std::optional<std::string> StatLines::Next(const MetricText& metrics, double seconds) {
  const std::optional<MetricText> last = std::exchange(last_, metrics);
  const double passed = seconds - std::exchange(last_seconds_, seconds);
  if (!last.has_value() || passed <= 0) return {};
  const auto now = [&](const char* name, const std::map<std::string, std::string>& labels = {}) {
    return metrics.Sum(name, labels).value_or(0);
  };
  const auto since = [&](const char* name, const std::map<std::string, std::string>& labels = {}) {
    return now(name, labels) - last->Sum(name, labels).value_or(0);
  };
  const auto percent = [](double part, double whole) {
    return whole <= 0 ? std::string("-") : fmt::format("{:.1f}", 100 * part / whole);
  };
  return Line(
      {fmt::format("{:.0f}", now("vllm:num_requests_running")),
       fmt::format("{:.0f}", now("vllm:num_requests_waiting")),
       fmt::format(
           "{:.1f}",
           since("vllm:prompt_tokens_by_source_total", {{"source", "local_compute"}}) / passed),
       fmt::format("{:.1f}", since("vllm:generation_tokens_total") / passed),
       percent(now("vllm:kv_cache_usage_perc"), 1),
       percent(now("quire_kv_slots", {{"state", "used"}}),
               now("quire_kv_slots", {{"state", "held"}})),
       percent(since("vllm:prefix_cache_hits_total"), since("vllm:prefix_cache_queries_total")),
       fmt::format("{:.0f}", since("vllm:num_preemptions_total"))});
}

}  // namespace quire
