// The flags of `quire plan`, and what they ask.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "base/status.h"
#include "plan/plan.h"

namespace quire {

struct PlanFlags {
  std::string model_path, shape;
  std::string kv;  // empty: f16; with --verify each that runs
  uint32_t page_size = 64;
  std::optional<uint32_t> sink_pages = {};
  uint32_t recent_pages = 0;
  std::string users = "1", context_len, shared_prefix = "0";
  std::optional<std::string> window = {};
  std::string memory, kv_memory, gpus;
  std::optional<double> cache_share = {};
  std::optional<std::string> weights_dtype = {};
  std::string ttft, tpot, bandwidth, flops;
  bool measures = false;
  bool explains = false, json = false;
  std::string chart_path;
  bool verifies = false;
};

// `command` gets the flags; the struct must outlive its parsing.
void AddPlanFlags(CLI::App& command, PlanFlags& flags);

// Reads the model's header, config.json or shape, and the words of the flags; asks this machine for
// its memory where no flag says any. Errors name the flag; as ReadKvModel and ReadShapeText.
StatusOr<PlanRequest> ReadPlanRequest(const PlanFlags& flags);

}  // namespace quire
