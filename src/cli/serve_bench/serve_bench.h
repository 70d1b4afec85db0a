// `quire bench serve`: the speed of a server as its clients feel it. The server may be any that
// speaks the OpenAI API; flags and the report's keys are those of `vllm bench serve`.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace quire {

struct ServeBenchFlags {
  std::string base_url = "http://127.0.0.1:8000";
  std::string backend = "openai";
  std::string endpoint;  // empty: the backend's
  std::string model;     // empty: the server's first
  std::string api_key;
  std::string dataset = "random";
  std::string dataset_path;
  uint32_t num_prompts = 1000;
  uint32_t input_len = 1024, output_len = 128, prefix_len = 0;  // random
  uint32_t repeated_prefix_len = 256, suffix_len = 256;         // prefix_repetition
  uint32_t num_prefixes = 10, repeated_output_len = 128;
  uint32_t sharegpt_output_len = 0;
  std::string prompt_form = "auto";
  std::string request_rate = "inf";
  uint32_t max_concurrency = 0;
  uint32_t num_warmups = 0;
  bool ignore_eos = false;
  double temperature = -1;  // below 0: the server's own
  std::string extra_body;
  std::vector<std::string> goodput;
  std::vector<double> percentiles = {95, 99};
  uint64_t seed = 0;
  uint32_t timeout_s = 600;
  bool save_result = false, save_detailed = false;
  std::string result_dir, result_filename;
  bool json = false;
};

// The flags must outlive the parsing.
CLI::App* AddServeBench(CLI::App& bench, ServeBenchFlags& flags);
// 0, or 1 when a call has failed.
StatusOr<int> RunServeBench(const ServeBenchFlags& flags);

}  // namespace quire
