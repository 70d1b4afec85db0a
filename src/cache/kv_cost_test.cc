// What a step and a match cost: nothing of the heap, and no more in a large cache than in a small
// one.
#include <algorithm>
#include <chrono>

#include "base/allocation_count.h"
#include "cache/prefix_list.h"
#include "cache/test_cache.h"

namespace quire {
namespace {

TEST(KvCost, DecodingAllocatesNothingOnceWarm) {
  KvGroupShape sealed_window = Sealed(0);
  sealed_window.window = 40;
  for (const std::vector<KvGroupShape>& groups :
       {std::vector{Full()}, {Full(), Window(40)}, {Sealed(1, 1)}, {Sealed(1), sealed_window}})
    for (const auto policy : {EvictionPolicyKind::kLru, EvictionPolicyKind::kReuse}) {
      TestCache c(groups, 300, policy);
      for (TokenId i = 0; i < 30; ++i) c.Run(Text(330, i));  // full: each new page evicts
      const Tokens text = Text(2000, 50);
      SequencePages pages = c.cache->NewSequence(c.ns, 2000);
      SequencePages other = c.Started(Text(20, 51));
      const uint64_t evicted = c.cache->tree().num_evicted_nodes();
      const uint64_t before = AllocationCount();
      bool is_ok = true;
      for (uint32_t length = 1; length <= 2000 && is_ok; ++length) {
        is_ok = pages.Reserve(length).ok();
        pages.Commit(is_ok ? length : length - 1, text);
        if (length == 1000) other.Release();  // pages without use, on the way
      }
      EXPECT_EQ(AllocationCount(), before);
      EXPECT_TRUE(is_ok);
      EXPECT_GT(c.cache->tree().num_evicted_nodes(), evicted);
    }
}

#if defined(NDEBUG) && !defined(QUIRE_SANITIZED)

constexpr uint32_t kPageSize = 4;
constexpr uint32_t kTextPages = 50;

// A cache with `num_pages` cached pages, in texts of kTextPages, and room for others.
std::unique_ptr<KvCache> Filled(uint32_t num_pages, uint32_t num_free, NamespaceId* ns) {
  auto cache = KvCache::Create({.shape = {.page_size = kPageSize, .groups = {Full(), Window(16)}},
                                .budget_bytes = (size_t{2} * num_pages + num_free) * kUnit})
                   .value();
  *ns = cache->Namespace({}).value();
  for (uint32_t i = 0; i < num_pages / kTextPages; ++i) {
    const Tokens text = Text(kTextPages * kPageSize, static_cast<TokenId>(i % 20'000));
    SequencePages pages = cache->NewSequence(*ns, text.size());
    EXPECT_TRUE(pages.Reserve(kTextPages * kPageSize).ok());
    pages.Commit(kTextPages * kPageSize, text);
    pages.End(text);
  }
  return cache;
}

// The least of some runs, in nanoseconds.
template <class F>
double Time(F&& run) {
  double least = 1e18;
  for (int round = 0; round < 7; ++round) {
    const auto start = std::chrono::steady_clock::now();
    run();
    const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - start;
    least = std::min(least, time.count());
  }
  return least;
}

struct Costs {
  double decode, evicting_decode, match, long_match;  // ns a token, a token, a page, a page
};

Costs Measure(uint32_t num_pages) {
  NamespaceId ns;
  constexpr uint32_t kTokens = 2000;
  const std::unique_ptr<KvCache> cache = Filled(num_pages, 2000, &ns);
  TokenId kind = 20'100;
  const auto decode = [&] {
    const Tokens text = Text(kTokens, ++kind % 1000 + 20'100);
    SequencePages pages = cache->NewSequence(ns, kTokens);
    for (uint32_t length = 1; length <= kTokens; ++length) {
      EXPECT_TRUE(pages.Reserve(length).ok());
      pages.Commit(length, text);
    }
  };
  Costs costs;
  const auto find = [&](const Tokens& text) {
    for (int i = 0; i < 20; ++i) EXPECT_EQ(cache->Find(ns, text).length, text.size());
  };
  costs.match = Time([&] { find(Text(kTextPages * kPageSize, 7)); }) / 20 / kTextPages;
  SequencePages running = cache->NewSequence(ns, 4000);
  const Tokens text = Text(4000, 21'200);
  EXPECT_TRUE(running.Reserve(4000).ok());
  running.Commit(4000, text);
  costs.long_match = Time([&] { find(text); }) / 20 / 1000;
  running.Release();
  costs.decode = Time(decode) / kTokens;
  while (cache->pool().free_bytes() >= 100 * kUnit) decode();
  costs.evicting_decode = Time(decode) / kTokens;
  return costs;
}

// 1,000 and 1,000,000 cached pages. The bounds are wide: a cost that grew with the cache would be a
// thousand times as large.
TEST(KvCostSlow, AStepAndAMatchCostTheSameInALargeCache) {
  const Costs few = Measure(1'000), many = Measure(1'000'000);
  std::printf(
      "ns a decoded token: %.0f and %.0f; when it evicts: %.0f and %.0f; ns a matched "
      "page: %.0f and %.0f; of a prompt of 1,000 pages: %.0f and %.0f\n",
      few.decode, many.decode, few.evicting_decode, many.evicting_decode, few.match, many.match,
      few.long_match, many.long_match);
  EXPECT_LT(many.decode, 8 * few.decode);
  EXPECT_LT(many.evicting_decode, 8 * few.evicting_decode);
  EXPECT_LT(many.match, 8 * few.match);
  EXPECT_LT(many.long_match, 8 * few.long_match);
  EXPECT_LT(many.long_match, 4 * many.match)
      << "a page of a long prompt costs as much as of a short";
}

// The engine thread lists prefixes between two steps.
TEST(KvCostSlow, AMillionNodesAreLookedThroughInOneLine) {
  constexpr uint32_t kNodes = 1'000'000;
  auto cache = KvCache::Create({.shape = {.page_size = 1, .groups = {Full()}},
                                .budget_bytes = size_t{kNodes} * kUnit,
                                .policy = EvictionPolicyKind::kLru})
                   .value();
  const NamespaceId ns = cache->Namespace({}).value();
  for (uint32_t i = 0; i < kNodes / 2; ++i) {  // each a text of two pages: the dearest to rank
    const Tokens text = {static_cast<TokenId>(i * 7 % (kNodes / 2)), 1};
    SequencePages pages = cache->NewSequence(ns, 2);
    ASSERT_TRUE(pages.Reserve(2).ok());
    pages.Commit(2, text);
    if (i % 1000 == 0) cache->ExpirePins(i / 1000);
    pages.End(text);
  }
  ASSERT_EQ(cache->tree().nodes().num_nodes(), kNodes + 2);
  double list_ms = 1e9, find_ms = 1e9;
  for (int round = 0; round < 5; ++round) {
    const auto start = std::chrono::steady_clock::now();
    const PrefixListing listing =
        ListPrefixes(*cache, {.tenant = "", .order = PrefixOrder::kAge, .limit = 100});
    const auto listed = std::chrono::steady_clock::now();
    EXPECT_EQ(listing.num_prefixes, kNodes / 2);
    EXPECT_EQ(FindPrefixNode(*cache, 1, {}), kNoNode);
    const auto found = std::chrono::steady_clock::now();
    using Ms = std::chrono::duration<double, std::milli>;
    list_ms = std::min(list_ms, Ms(listed - start).count());
    find_ms = std::min(find_ms, Ms(found - listed).count());
  }
  std::printf("1,000,000 nodes: %.1f ms to list, %.1f ms to find a name\n", list_ms, find_ms);
  EXPECT_LT(list_ms, 100);  // 10 times what a quiet machine needs
  EXPECT_LT(find_ms, 100);
}

#endif

}  // namespace
}  // namespace quire
