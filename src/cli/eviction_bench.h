// `quire bench eviction`: what a cache would hit on recorded requests, by eviction policy.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace quire {

struct EvictionBenchFlags {
  std::vector<std::string> traces;  // JSON lines with "hash_ids", as Mooncake's
  std::vector<std::string> memory_tokens = {"0.5M", "2.6M", "10M"};
  std::vector<std::string> policies = {"plain_lru", "lru", "reuse", "best"};
  uint32_t page_size = 512;
  uint32_t flood = 0;  // pages of a second tenant for each page of the trace
  bool json = false;
};

// Prints a table of hit rates, or a JSON list.
StatusOr<int> RunEvictionBench(const EvictionBenchFlags& flags);

}  // namespace quire
