#include "cli/eviction_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <sstream>
#include <string_view>

#include "base/errors.h"
#include "cache/trace_replay.h"
#include "cli/input.h"

namespace quire {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMostTokens = 1e11;
constexpr uint64_t kMostPages = 1 << 28;         // more than any trace has
constexpr uint64_t kMostId = uint64_t{1} << 63;  // from here on: ids of WithFlood()

// "2.6M": a number with k, M, G or nothing.
StatusOr<uint64_t> ParseTokens(const std::string& text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  const std::string_view unit(rest, static_cast<size_t>(end - rest));
  const double factor = unit == "k"    ? 1e3
                        : unit == "M"  ? 1e6
                        : unit == "G"  ? 1e9
                        : unit.empty() ? 1
                                       : 0;
  value *= factor;
  if (error != std::errc() || factor == 0 || !(value >= 1) || value > kMostTokens)
    return InvalidArgument("--memory-tokens '{}': need a number such as 500k or 2.6M, at most 100G",
                           text);
  return static_cast<uint64_t>(std::llround(value));
}

StatusOr<TraceRequest> ParseRequest(const std::string& line) {
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("hash_ids") || !json["hash_ids"].is_array())
    return InvalidFile("no JSON object with a list \"hash_ids\"");
  TraceRequest request;
  for (const Json& id : json["hash_ids"]) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= kMostId)
      return InvalidFile("\"hash_ids\" has {}, which is no id below 2^63", id.dump());
    request.ids.push_back(id.get<uint64_t>());
  }
  return request;
}

StatusOr<std::vector<TraceRequest>> ReadTrace(const std::string& path) {
  QUIRE_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  std::vector<TraceRequest> requests;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (line.empty()) continue;
    StatusOr<TraceRequest> request = ParseRequest(line);
    if (!request.ok()) return request.status().WithContext(fmt::format("{}:{}", path, number));
    requests.push_back(std::move(request).value());
  }
  return requests;
}

// One count for each tenant; of the two bounds one for all together.
StatusOr<std::vector<HitCount>> Replay(std::span<const TraceRequest> requests, uint32_t num_pages,
                                       uint32_t page_size, const std::string& policy) {
  if (policy == "plain_lru") return std::vector<HitCount>{ReplayPlainLru(requests, num_pages)};
  if (policy == "best") return std::vector<HitCount>{ReplayBestPossible(requests, num_pages)};
  QUIRE_ASSIGN_OR_RETURN(const EvictionPolicyKind kind, ParseEvictionPolicy(policy));
  return ReplayPolicy(requests, num_pages, page_size, kind);
}

StatusOr<Json> RowOf(std::span<const TraceRequest> trace, std::span<const TraceRequest> flooded,
                     uint64_t num_tokens, const EvictionBenchFlags& flags,
                     const std::string& policy) {
  const auto num_pages = static_cast<uint32_t>(std::min(num_tokens / flags.page_size, kMostPages));
  const auto first = [](const std::vector<HitCount>& counts) {
    return counts.empty() ? HitCount() : counts[0];
  };
  QUIRE_ASSIGN_OR_RETURN(const auto counts, Replay(trace, num_pages, flags.page_size, policy));
  Json row = {{"policy", policy},
              {"memory_tokens", num_tokens},
              {"num_pages", num_pages},
              {"pages", first(counts).pages},
              {"hits", first(counts).hits}};
  if (flags.flood == 0 || policy == "plain_lru" || policy == "best") return row;
  QUIRE_ASSIGN_OR_RETURN(const auto both, Replay(flooded, num_pages, flags.page_size, policy));
  row["hits_beside_flood"] = first(both).hits;
  return row;
}

std::string Percent(const Json& row, const std::string& hits) {
  if (!row.contains(hits)) return "";
  const auto pages = row["pages"].get<double>();
  return fmt::format("{:.2f} %", pages == 0 ? 0 : 100 * row[hits].get<double>() / pages);
}

}  // namespace

StatusOr<int> RunEvictionBench(const EvictionBenchFlags& flags) {
  Json rows = Json::array();
  for (const std::string& path : flags.traces) {
    QUIRE_ASSIGN_OR_RETURN(const std::vector<TraceRequest> trace, ReadTrace(path));
    const std::vector<TraceRequest> flooded = WithFlood(trace, flags.flood);
    for (const std::string& memory : flags.memory_tokens) {
      QUIRE_ASSIGN_OR_RETURN(const uint64_t num_tokens, ParseTokens(memory));
      for (const std::string& policy : flags.policies) {
        QUIRE_ASSIGN_OR_RETURN(Json row, RowOf(trace, flooded, num_tokens, flags, policy));
        row["trace"] = std::filesystem::path(path).filename().string();
        rows.push_back(std::move(row));
      }
    }
  }
  if (flags.json) {
    fmt::print("{}\n", rows.dump(2));
    return 0;
  }
  fmt::print("hits of all pages asked for, pages of {} tokens\n\n", flags.page_size);
  fmt::print("{:<28}{:>14}{:>12}{:>11}{:>15}\n", "trace", "memory tokens", "policy", "hit rate",
             flags.flood > 0 ? "beside flood" : "");
  for (const Json& row : rows)
    fmt::print("{:<28}{:>14}{:>12}{:>11}{:>15}\n", row["trace"].get<std::string>(),
               row["memory_tokens"].get<uint64_t>(), row["policy"].get<std::string>(),
               Percent(row, "hits"), Percent(row, "hits_beside_flood"));
  return 0;
}

}  // namespace quire
