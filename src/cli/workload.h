// Workload: the requests of a measurement: when each comes, its prompt, the length of its answer.
//
// Prompts are of random ids that depend on the seed alone. They are kept as pieces and made when
// they are needed, since those of a trace can be large.
//
// Threading: plain values.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/status.h"

namespace quire {

// Uniform, both ends included.
struct LengthRange {
  uint32_t least = 0, most = 0;
};

// "256" or "100-300". kInvalidArgument names the flag.
StatusOr<LengthRange> ParseLengthRange(std::string_view flag, const std::string& text);

// The first `length` ids of the endless row of random ids with this number. Two rows begin with
// different ids if their numbers differ by less than the vocabulary.
struct PromptPiece {
  uint64_t row = 0;
  uint32_t length = 0;
};

struct PlannedRequest {
  double arrival_seconds = 0;  // from the start of the measurement
  std::vector<PromptPiece> prompt;
  uint32_t output_len = 1;

  uint32_t prompt_len() const;
};

struct WorkloadOptions {
  uint32_t num_requests = 32;
  LengthRange prompt_len = {256, 256};  // of a request's own tokens, after the shared ones
  LengthRange output_len = {64, 64};
  uint32_t shared_prefix = 0;  // tokens that the requests of a group begin with
  uint32_t num_groups = 1;     // requests take turns
  double rate = 0;             // requests a second, at random times; 0: all at once
  uint64_t seed = 1;
};

// By arrival. Requires: ranges with least <= most, at least one group.
std::vector<PlannedRequest> PlanRequests(const WorkloadOptions& options);

// New random arrivals, in the order that the requests have; rate 0: all at once.
void SpreadArrivals(std::span<PlannedRequest> requests, double rate, uint64_t seed);

// Afterwards no two prompts have a piece in common: to measure what sharing saves.
void MakeDistinct(std::span<PlannedRequest> requests);

std::vector<TokenId> MakePrompt(std::span<const PromptPiece> pieces, uint64_t seed,
                                uint32_t num_tokens);

// A row that no other use of this file has. `index`: below 2^60.
PromptPiece OwnPiece(uint64_t index, uint32_t length);

}  // namespace quire
