// The banner: what a server says of itself when it is ready. All numbers about memory are those of
// a KvReport, so they are the ones of /metrics and /quire/v1/cache. Lines that come again and again
// are those of server/log.h.
//
// Threading: a pure function.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/kv_report.h"

namespace quire {

// What the engine does not know.
struct BannerFacts {
  std::string version = {};
  std::string model_name = {}, architecture = {}, file_type = {};
  uint32_t trained_context_len = 0;
  uint64_t weight_bytes = 0;
  std::string instruction_set = {};
  int num_threads = 0;
  std::string address = {};  // "http://127.0.0.1:8000"
  size_t num_keys = 0;       // 0: no key is needed
  size_t num_tenants = 0;
  std::vector<std::string> warnings = {};
};

// Several lines, each with its end.
std::string Banner(const BannerFacts& facts, const KvReport& report);

}  // namespace quire
