// CacheModel: random operations of all kinds on a tiny KvCache, checked after each one against what
// plain tokens say. For tests (cache_model_test.cc) and long runs (cache_model_main.cc).
//
// K and V of a token are one number (cache/test_values.h).
#pragma once

#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "cache/kv_cache.h"

namespace quire {

struct CacheModelShape {
  bool seals = false;    // a page-wise codec
  uint32_t window = 0;   // of a second layer group; 0: there is only the full one
  bool has_full = true;  // false: the window group is the only one
  uint32_t sink_pages = 0;
  uint32_t recent_pages = 0;
  EvictionPolicyKind policy = kDefaultEvictionPolicy;
};

struct CacheModelCase {
  const char* name;
  CacheModelShape shape;
};

// {f16, page-wise} x {full, window}, sinks, recent pages and both policies.
std::span<const CacheModelCase> CacheModelCases();

class CacheModel {
 public:
  CacheModel(const CacheModelShape& shape, uint32_t num_pages, uint64_t seed);

  // One operation and all checks; kInternal with what was found and the operation.
  Status Step();
  // Ends all that runs, unpins, evicts: everything must be free.
  Status Drain();

  const KvCache& cache() const { return *cache_; }
  uint64_t num_failed_reserves() const { return num_failed_reserves_; }
  uint64_t matched_tokens() const { return cache_->match_counts().matched_tokens; }

 private:
  struct Live {
    SequencePages pages;
    std::vector<TokenId> tokens;  // of the pages, and for a prompt also those to come
    NamespaceId ns;
    uint32_t owner;  // what its key is named here: ids of namespaces are used again
    NamespaceHold hold;
    bool may_be_forgotten = false;  // by a drop: its pages may be in no match
  };

  uint32_t Random(uint32_t below) { return static_cast<uint32_t>(random_() % below); }
  std::vector<TokenId> RandomPrompt();
  Status Start();
  Status Compute(Live& live);
  void Write(Live& live, uint32_t begin, uint32_t end);
  Status CheckContents(const Live& live) const;
  Status CheckAll() const;
  Status CheckReport() const;
  Status CheckListing() const;
  Status Pin();
  Status ChangeListed();
  std::string Run(uint32_t operation, Status* status);

  KvShape shape_;
  std::unique_ptr<KvCache> cache_;
  std::mt19937_64 random_;
  std::vector<NamespaceId> namespaces_;
  std::vector<NamespaceHold> holds_;
  std::vector<Live> live_;
  std::vector<PinId> pins_;
  uint32_t now_s_ = 0;
  uint64_t num_failed_reserves_ = 0;
};

}  // namespace quire
