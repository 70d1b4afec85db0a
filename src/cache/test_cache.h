// TestCache: a small KvCache and the calls that an engine makes of it. For tests.
//
// Sizes: an open page is one unit of 4 KiB of the budget whatever its group, a sealed one too.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "cache/kv_cache.h"

namespace quire {

using Tokens = std::vector<TokenId>;
constexpr size_t kUnit = 4096;

// `length` tokens that no text of another `kind` begins with.
inline Tokens Text(uint32_t length, TokenId kind = 0) {
  Tokens tokens;
  for (uint32_t i = 0; i < length; ++i) tokens.push_back(kind * 100'000 + static_cast<TokenId>(i));
  return tokens;
}

inline Tokens operator+(Tokens a, const Tokens& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

inline Tokens First(const Tokens& tokens, size_t length) {
  return {tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(length)};
}

inline KvGroupShape Full() { return {.open_page_bytes = kUnit}; }
inline KvGroupShape Window(uint32_t window) { return {.window = window, .open_page_bytes = kUnit}; }
inline KvGroupShape Sealed(uint32_t sink_pages, uint32_t recent_pages = 0) {
  return {.open_page_bytes = kUnit,
          .sealed_page_bytes = kUnit / 4,
          .sink_pages = sink_pages,
          .recent_pages = recent_pages};
}

struct TestCache {
  TestCache(std::vector<KvGroupShape> groups, uint32_t num_units,
            EvictionPolicyKind policy = EvictionPolicyKind::kLru, uint32_t page_size = 16)
      : cache(KvCache::Create({.shape = {.page_size = page_size, .groups = std::move(groups)},
                               .budget_bytes = num_units * kUnit,
                               .policy = policy,
                               .max_namespaces = 8,
                               .fill_with_nan = true})
                  .value()),
        ns(cache->Namespace({}).value()) {}
  ~TestCache() { ExpectSound(); }

  SequencePages Start(const Tokens& prompt) { return cache->NewSequence(ns, prompt, 4096, &match); }
  // Computes what is missing up to `end`, in steps.
  void Compute(SequencePages& pages, const Tokens& tokens, uint32_t end, uint32_t chunk = 64) {
    do {
      const uint32_t to = std::min(end, pages.length() + chunk);
      const Status status = pages.Reserve(to);
      ASSERT_TRUE(status.ok()) << status.message();
      pages.Commit(to, tokens);
      const Status sound = pages.CheckInvariants();
      ASSERT_TRUE(sound.ok()) << sound.message();
    } while (pages.length() < end);
  }
  SequencePages Started(const Tokens& prompt) {
    SequencePages pages = Start(prompt);
    Compute(pages, prompt, static_cast<uint32_t>(prompt.size()));
    return pages;
  }
  // A whole request; returns how many tokens of it were not computed.
  uint32_t Run(const Tokens& tokens) {
    SequencePages pages = Start(tokens);
    const uint32_t cached = pages.next_position();
    Compute(pages, tokens, static_cast<uint32_t>(tokens.size()));
    pages.End(tokens);
    return cached;
  }
  PrefixMatch Find(const Tokens& prompt) const { return cache->Find(ns, prompt); }
  size_t held() const { return cache->pool().held_bytes() / kUnit; }
  size_t cached() const { return cache->pool().cached_bytes() / kUnit; }
  void Evict(uint32_t num_units) {
    EXPECT_TRUE(cache->MakeRoom(cache->pool().free_bytes() + num_units * kUnit));
  }
  void ExpectSound() const {
    const Status status = cache->CheckInvariants();
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(cache->pool().num_failures(), 0u);
  }

  std::unique_ptr<KvCache> cache;
  NamespaceId ns;
  PrefixMatch match;  // of the last Start()
};

}  // namespace quire
