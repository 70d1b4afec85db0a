#include "cli/serve_bench/prompt_set.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <random>
#include <string_view>
#include <utility>

#include "base/errors.h"

namespace quire {
namespace {

using Json = nlohmann::json;

constexpr std::array<std::string_view, 64> kWords = {
    " the",   " of",    " and",  " to",    " in",    " is",   " that", " for",  " it",    " as",
    " was",   " with",  " be",   " by",    " on",    " not",  " he",   " this", " are",   " or",
    " his",   " from",  " at",   " which", " but",   " have", " an",   " had",  " they",  " you",
    " were",  " their", " one",  " all",   " we",    " can",  " her",  " has",  " there", " been",
    " if",    " more",  " when", " will",  " would", " who",  " so",   " no",   " out",   " up",
    " into",  " that",  " do",   " any",   " your",  " what", " some", " now",  " time",  " only",
    " could", " new",   " them", " other"};

std::string TextOf(const std::vector<TokenId>& tokens) {
  std::string text;
  for (const TokenId token : tokens) text += kWords[static_cast<uint32_t>(token) % kWords.size()];
  return text;
}

struct Turns {
  std::string asked, answered;
};

// Nothing if it is no conversation of two turns.
Turns FirstTurns(const Json& entry) {
  const auto list = entry.is_object() ? entry.find("conversations") : entry.end();
  if (list == entry.end() || !list->is_array() || list->size() < 2) return {};
  const auto value_of = [](const Json& turn) -> std::string {
    const auto value = turn.is_object() ? turn.find("value") : turn.end();
    return value != turn.end() && value->is_string() ? value->get<std::string>() : std::string();
  };
  return {value_of((*list)[0]), value_of((*list)[1])};
}

}  // namespace

std::vector<BenchPrompt> RandomPrompts(const WorkloadOptions& options, uint32_t num_tokens,
                                       bool as_ids) {
  std::vector<BenchPrompt> prompts;
  for (const PlannedRequest& request : PlanRequests(options)) {
    const auto tokens = MakePrompt(request.prompt, options.seed, num_tokens);
    prompts.push_back({.prompt = as_ids ? Json(tokens) : Json(TextOf(tokens)),
                       .output_len = request.output_len,
                       .arrival_seconds = request.arrival_seconds});
  }
  return prompts;
}

StatusOr<std::vector<BenchPrompt>> ShareGptPrompts(const ShareGptOptions& options) {
  std::ifstream file(options.path, std::ios::binary);
  if (!file) return NotFound("--dataset-path {}: cannot be opened", options.path);
  Json entries = Json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!entries.is_array())
    return InvalidFile("--dataset-path {}: need a JSON list of conversations", options.path);
  std::mt19937_64 random(options.seed);
  std::shuffle(entries.begin(), entries.end(), random);
  std::vector<BenchPrompt> prompts;
  for (const Json& entry : entries) {
    if (prompts.size() == options.num_requests) break;
    Turns turns = FirstTurns(entry);
    if (turns.asked.empty() || turns.answered.empty()) continue;
    uint32_t output_len = options.output_len;
    if (output_len == 0) {
      QUIRE_ASSIGN_OR_RETURN(output_len, options.count_tokens(turns.answered));
    }
    if (options.max_len > 0) {
      QUIRE_ASSIGN_OR_RETURN(const uint32_t prompt_len, options.count_tokens(turns.asked));
      if (uint64_t{prompt_len} + output_len > options.max_len) continue;
    }
    if (output_len > 0)
      prompts.push_back({.prompt = std::move(turns.asked), .output_len = output_len});
  }
  if (prompts.empty())
    return InvalidFile("--dataset-path {}: holds no conversation of two turns that fits",
                       options.path);
  std::vector<PlannedRequest> times(prompts.size());
  SpreadArrivals(times, options.rate, options.seed);
  for (size_t i = 0; i < prompts.size(); ++i) prompts[i].arrival_seconds = times[i].arrival_seconds;
  return prompts;
}

}  // namespace quire
