#include "cli/trace_file.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "base/errors.h"
#include "cli/input.h"

namespace quire {
namespace {

using Json = nlohmann::json;

constexpr uint32_t kTokensOfHashId = 512;
constexpr double kMostTokens = 1e8;              // of one request
constexpr uint64_t kMostId = uint64_t{1} << 60;  // workload.h has its own rows beyond

uint32_t Scaled(double length, double scale) {
  return static_cast<uint32_t>(std::llround(std::clamp(length * scale, 1.0, kMostTokens)));
}

// A number of a request, 0 to kMostTokens (a time: to 1e15).
std::optional<double> NumberOf(const Json& json, const char* key, double most) {
  if (!json.contains(key) || !json[key].is_number()) return std::nullopt;
  const double value = json[key].get<double>();
  if (!(value >= 0 && value <= most)) return std::nullopt;
  return value;
}

StatusOr<PlannedRequest> ParseJsonLine(const std::string& line, size_t index, double scale) {
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return InvalidFile("no JSON object");
  const auto input = NumberOf(json, "input_length", kMostTokens);
  const auto output = NumberOf(json, "output_length", kMostTokens);
  const auto time = NumberOf(json, "timestamp", 1e15);
  if (!input || !output || !time)
    return InvalidFile("need numbers \"timestamp\", \"input_length\" and \"output_length\"");
  PlannedRequest request;
  request.arrival_seconds = *time / 1000;
  request.output_len = Scaled(*output, scale);
  uint32_t rest = Scaled(*input, scale);
  if (json.contains("hash_ids")) {
    const uint32_t whole = Scaled(kTokensOfHashId, scale);
    if (!json["hash_ids"].is_array()) return InvalidFile("\"hash_ids\" is no list");
    for (const Json& id : json["hash_ids"]) {
      if (!id.is_number_unsigned() || id.get<uint64_t>() >= kMostId)
        return InvalidFile("\"hash_ids\" has {}, which is no id below 2^60", id.dump());
      const uint32_t length = std::min(rest, whole);
      if (length == 0) break;
      request.prompt.push_back({.row = id.get<uint64_t>(), .length = length});
      rest -= length;
    }
  }
  if (rest > 0) request.prompt.push_back(OwnPiece(index, rest));
  return request;
}

StatusOr<PlannedRequest> ParseCsvLine(const std::string& line, size_t index, double scale) {
  int year = 0;
  unsigned month = 0, day = 0, hour = 0, minute = 0;
  double second = 0, input = 0, output = 0;
  if (std::sscanf(line.c_str(), "%d-%u-%u %u:%u:%lf,%lf,%lf", &year, &month, &day, &hour, &minute,
                  &second, &input, &output) != 8 ||
      !(input >= 0 && input <= kMostTokens && output >= 0 && output <= kMostTokens))
    return InvalidFile("need a line such as 2023-11-16 18:17:03.97996,4808,10");
  const std::chrono::sys_days date =
      std::chrono::year(year) / std::chrono::month(month) / std::chrono::day(day);
  PlannedRequest request;
  request.arrival_seconds =
      date.time_since_epoch().count() * 86400.0 + hour * 3600.0 + minute * 60.0 + second;
  request.output_len = Scaled(output, scale);
  request.prompt.push_back(OwnPiece(index, Scaled(input, scale)));
  return request;
}

}  // namespace

StatusOr<std::vector<PlannedRequest>> ReadTraceFile(const std::string& path,
                                                    const TraceOptions& options) {
  QUIRE_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  const bool is_json = text.starts_with("{");
  std::istringstream lines(text);
  std::string line;
  int number = 0;
  if (!is_json) {
    std::getline(lines, line);
    ++number;
    if (!line.starts_with("TIMESTAMP,"))
      return InvalidFile(
          "{}: neither JSON lines nor CSV with TIMESTAMP,ContextTokens,"
          "GeneratedTokens",
          path);
  }
  std::vector<PlannedRequest> requests;
  while (std::getline(lines, line) && (options.limit == 0 || requests.size() < options.limit)) {
    ++number;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty()) continue;
    auto request = is_json ? ParseJsonLine(line, requests.size(), options.scale)
                           : ParseCsvLine(line, requests.size(), options.scale);
    if (!request.ok()) return request.status().WithContext(fmt::format("{}:{}", path, number));
    requests.push_back(std::move(request).value());
  }
  if (requests.empty()) return InvalidFile("{}: has no requests", path);
  std::stable_sort(requests.begin(), requests.end(), [](const auto& a, const auto& b) {
    return a.arrival_seconds < b.arrival_seconds;
  });
  const double first = requests.front().arrival_seconds;
  for (PlannedRequest& request : requests)
    request.arrival_seconds =
        options.speed > 0 ? (request.arrival_seconds - first) / options.speed : 0;
  return requests;
}

}  // namespace quire
