// Which prefixes the cache has, for people who look after it: /quire/v1/prefixes.
//
// A prefix is listed where a text ends for now (a conversation's last page), where texts part (a
// system prompt that conversations go on from) and where a pin stands. Pages between those places
// belong to prefixes that are listed; so the list is as short as the cache's contents allow, and
// what many requests share is one line.
//
// Threading: the engine thread, between two steps.
// Cost: a look at 24 bytes for each node of the tree, in one line (prefix_list_test.cc measures
// it), and for each prefix that is returned as many nodes as the widest window has pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/eviction_policy.h"

namespace quire {

class KvCache;

// A name: a hash of the namespace's key and the tokens, the same in every run. Nobody trusts it for
// contents: of two prefixes with one id, one is found.
using PrefixId = uint64_t;

enum class PrefixOrder {
  kBytes,  // most first. Ranked by tokens: only pages of windows can make a difference
  kHits,   // most first
  kAge,    // unused for longest first
};

struct PrefixQuery {
  std::optional<std::string> tenant = {};  // of this one only
  PrefixOrder order = PrefixOrder::kBytes;
  uint32_t limit = 100;  // at most 10,000 are given
};

struct PrefixInfo {
  PrefixId id = 0;
  std::string tenant;
  uint32_t length = 0;  // tokens
  // That a request which goes on from here would read: those of full groups, shared ones too, and
  // those of window groups that its end sees and that are still there.
  uint32_t num_pages = 0;
  size_t bytes = 0;               // of them, as the budget counts
  uint32_t num_hits = 0;          // requests that used its last page, since that is here
  uint32_t last_used_s = 0;       // KvCache::SetNow's clock
  uint32_t num_holders = 0;       // sequences that use its last page now
  bool is_pinned = false;         // for ever
  uint32_t retained_until_s = 0;  // 0: not
  std::string label;              // of its pin
};

struct PrefixListing {
  std::vector<PrefixInfo> prefixes;  // at most `limit`, in order
  uint64_t num_prefixes = 0;         // all that the query fits
};

PrefixListing ListPrefixes(const KvCache& cache, const PrefixQuery& query);

// kNoNode if there is none, for this tenant if one is given.
NodeId FindPrefixNode(const KvCache& cache, PrefixId id, const std::optional<std::string>& tenant);
// Requires: a node that is no root.
PrefixInfo DescribePrefix(const KvCache& cache, NodeId node);

}  // namespace quire
