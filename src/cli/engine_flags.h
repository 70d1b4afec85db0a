// The flags that all commands that load an engine share, with their defaults, ranges and help.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "engine/engine.h"
#include "engine/sampler.h"

namespace quire {

struct EngineFlags {
  std::string model_path;
  int num_threads = 0;
  std::string kv = "f16";
  std::string kv_memory;  // "4GiB"; empty: half of the free memory
  uint32_t page_size = 64;
  std::string activations = "int8";
  uint32_t context_len = 0;
  uint32_t token_budget = 512;
  std::string target_itl;  // "80ms"; empty: no such goal
  uint32_t max_seqs = 256;
  std::optional<uint32_t> sink_pages;
  uint32_t recent_pages = 0;
  std::string prefix_cache = "on";
  std::string cascade = "on";
  std::string eviction;  // empty: the default
};

struct SamplingFlags {
  SamplingParams params;
  int64_t seed = -1;  // negative: another one each time
};

// `command` gets the flags; the struct must outlive its parsing.
void AddModelArgument(CLI::App& command, EngineFlags& flags);
void AddEngineFlags(CLI::App& command, EngineFlags& flags, bool with_threads);
// The same without the model.
void AddEngineChoices(CLI::App& command, EngineFlags& flags, bool with_threads);
void AddSamplingFlags(CLI::App& command, SamplingFlags& flags);

// QUIRE_CPU and the words of the flags, checked: each problem, which names its flag, into
// `problems`. The result is useful if there is none.
EngineOptions ReadEngineOptions(const EngineFlags& flags, std::vector<Status>* problems);
// The same, or the first problem.
StatusOr<EngineOptions> ToEngineOptions(const EngineFlags& flags);
// Ranges checked; the seed drawn if none was given.
StatusOr<SamplingParams> ToSamplingParams(const SamplingFlags& flags);

// Loads the model with a progress bar on stderr, if that is a terminal.
StatusOr<std::unique_ptr<Engine>> LoadEngine(const EngineFlags& flags);
// The same without the engine's thread: for what computes by itself.
StatusOr<std::unique_ptr<ModelRunner>> LoadRunner(const EngineFlags& flags);

}  // namespace quire
