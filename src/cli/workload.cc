#include "cli/workload.h"

#include <charconv>
#include <cmath>
#include <random>

#include "base/errors.h"
#include "base/philox.h"

namespace quire {
namespace {

constexpr uint64_t kPrefixRows = uint64_t{1} << 61;
constexpr uint64_t kOwnRows = uint64_t{1} << 62;

std::array<uint32_t, 4> RandomIds(uint64_t row, uint32_t block, uint64_t seed) {
  return Philox4x32({block, 0, static_cast<uint32_t>(row), static_cast<uint32_t>(row >> 32)},
                    {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
}

uint32_t Draw(const LengthRange& range, std::mt19937_64& random) {
  return range.least + static_cast<uint32_t>(random() % (range.most - range.least + uint64_t{1}));
}

}  // namespace

StatusOr<LengthRange> ParseLengthRange(std::string_view flag, const std::string& text) {
  LengthRange range;
  const char* end = text.data() + text.size();
  auto parsed = std::from_chars(text.data(), end, range.least);
  range.most = range.least;
  if (parsed.ec == std::errc() && parsed.ptr < end && *parsed.ptr == '-')
    parsed = std::from_chars(parsed.ptr + 1, end, range.most);
  if (parsed.ec != std::errc() || parsed.ptr != end || range.most < range.least)
    return InvalidArgument(
        "{} '{}': need a number of tokens such as 256, or a range such as "
        "100-300",
        flag, text);
  return range;
}

uint32_t PlannedRequest::prompt_len() const {
  uint32_t length = 0;
  for (const PromptPiece& piece : prompt) length += piece.length;
  return length;
}

PromptPiece OwnPiece(uint64_t index, uint32_t length) {
  return {.row = kOwnRows + index, .length = length};
}

std::vector<PlannedRequest> PlanRequests(const WorkloadOptions& options) {
  std::mt19937_64 random(options.seed);
  std::vector<PlannedRequest> requests(options.num_requests);
  for (uint32_t i = 0; i < options.num_requests; ++i) {
    PlannedRequest& request = requests[i];
    if (options.shared_prefix > 0)
      request.prompt.push_back(
          {.row = kPrefixRows + i % options.num_groups, .length = options.shared_prefix});
    if (const uint32_t length = Draw(options.prompt_len, random); length > 0)
      request.prompt.push_back(OwnPiece(i, length));
    request.output_len = Draw(options.output_len, random);
  }
  SpreadArrivals(requests, options.rate, options.seed);
  return requests;
}

void SpreadArrivals(std::span<PlannedRequest> requests, double rate, uint64_t seed) {
  std::mt19937_64 random(seed + 1);
  double now = 0;
  for (PlannedRequest& request : requests) {
    request.arrival_seconds = now;
    // A Poisson process: gaps are exponential. 53 bits, never 1.
    const double uniform = static_cast<double>(random() >> 11) * 0x1p-53;
    if (rate > 0) now -= std::log1p(-uniform) / rate;
  }
}

void MakeDistinct(std::span<PlannedRequest> requests) {
  for (size_t i = 0; i < requests.size(); ++i) {
    const uint32_t length = requests[i].prompt_len();
    requests[i].prompt = {OwnPiece(i, length)};
  }
}

std::vector<TokenId> MakePrompt(std::span<const PromptPiece> pieces, uint64_t seed,
                                uint32_t num_tokens) {
  std::vector<TokenId> prompt;
  for (const PromptPiece& piece : pieces) {
    for (uint32_t i = 0; i < piece.length; i += 4) {
      const auto ids = RandomIds(piece.row, i / 4, seed);
      for (uint32_t j = 0; j < 4 && i + j < piece.length; ++j) {
        const uint64_t id = i + j == 0 ? piece.row + seed : ids[j];
        prompt.push_back(static_cast<TokenId>(id % num_tokens));
      }
    }
  }
  return prompt;
}

}  // namespace quire
