// ServeOptions: all that `quire serve` can be told, checked. The table of flags is
// cli/serve_flags.cc.
//
// Threading: plain values.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/options.h"
#include "server/access.h"
#include "server/http/http_server.h"
#include "server/log.h"

namespace quire {

enum class SamplingDefaults {
  kOpenAi,  // temperature 1, top_p 1, nothing else
  kModel,   // the file's general.sampling.*
};

struct ServeOptions {
  std::string model_path;
  // /v1/models lists these, and requests may name any; "*" takes any name. Empty: the model's own.
  std::vector<std::string> served_names = {};
  std::string owned_by = "quire";

  EngineOptions engine = {};
  HttpOptions http = {};
  AccessOptions access = {};
  LogOptions log = {};

  std::chrono::milliseconds queue_timeout{0};        // most time in the queue; 0: no limit
  std::chrono::milliseconds request_timeout{0};      // of a whole request; 0: no limit
  std::chrono::milliseconds drain{25'000};           // from SIGTERM until streams are cut
  std::chrono::milliseconds sse_keep_alive{15'000};  // silence until a comment line; 0: none

  bool strict_fields = false;  // unknown fields are refused
  bool trust_request_chat_template = false;
  std::string chat_template_path = {};    // empty: the model's own
  std::string chat_template_kwargs = {};  // a JSON object, or empty
  SamplingDefaults sampling_defaults = SamplingDefaults::kOpenAi;
};

}  // namespace quire
