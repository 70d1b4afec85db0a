// The flags of `quire serve`, with their defaults, ranges and help; `quire config` has them too.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/engine_flags.h"
#include "server/serve_options.h"

namespace quire {

struct ServeFlags {
  EngineFlags engine;
  std::string host = "127.0.0.1", unix_path;
  uint16_t port = 8000;
  std::string certificate_file, key_file;
  std::vector<std::string> api_keys;
  std::string api_key_file;
  bool no_auth = false, open_metrics = false;
  std::vector<std::string> allowed_hosts, cors_origins;
  std::vector<std::string> served_names;
  std::string owned_by = "quire";
  std::string max_queue, max_queue_tokens = "0", queue_timeout = "0", request_timeout = "0";
  std::string drain = "25s", sse_keep_alive = "15s";
  bool strict_fields = false, trust_request_chat_template = false;
  std::string chat_template_path, chat_template_kwargs, sampling_defaults = "openai";
  std::string log_format = "text", log_level = "info";
  bool log_prompts = false;
  std::string max_body = "32MiB", head_time = "10s", body_time = "60s", write_stall = "60s",
              idle_time = "75s";
  uint32_t max_connections = 1024, max_connections_per_address = 256;
  bool check = false;  // load, print the banner, end

  std::string config_path;  // read by cli/option_sources.h
};

// `command` gets the flags; the struct must outlive its parsing. --check only for `serve` itself.
void AddServeFlags(CLI::App& command, ServeFlags& flags, bool with_check);

// All flags checked; each problem is one text in `problems`. The result is useful if there is none.
// `needs_model`: an absent MODEL is a problem.
ServeOptions ToServeOptions(const ServeFlags& flags, bool needs_model,
                            std::vector<std::string>* problems);

// After the parse: the environment and the file of --config too, then ToServeOptions.
ServeOptions ReadServeOptions(CLI::App& command, ServeFlags& flags, bool needs_model,
                              std::vector<std::string>* problems);

}  // namespace quire
